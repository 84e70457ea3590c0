/** A changed definition on stored records, in the editor and between versions. */
import { expect } from 'vitest'
import { accessibilityFindings, describeInBrowser, test, Visitor } from '../support/browser.ts'

const columns = [
  { name: 'id', type: 'BIGINT', path: '$.id' },
  { name: 'city', type: 'VARCHAR', path: '$.city' },
]

describeInBrowser('a comparison on stored records', () => {
  test('shows what a draft changes, and what a version changed', async ({ browser, inlet }) => {
    const { id, viewId } = await inlet.endpoint({ bucket: 'lake', view: { name: 'places', definition: { columns } } })
    const lines = Array.from({ length: 40 }, (_, n) =>
      JSON.stringify({ id: n % 20 === 7 ? 'seven' : n, city: n % 2 ? 'Ulm' : null, town: 'Bonn' }),
    )
    const { body } = await inlet.ingest(id, `${lines.join('\n')}\n`)
    await inlet.committed(id, [body.segment_seq])
    const { id: draft } = await inlet.ok('POST', `/v1/views/${viewId}/versions`)
    const changed = [
      { ...columns[0], cast_failures: 'dlq' },
      { name: 'city', type: 'VARCHAR', path: '$.town' },
      { name: 'town', type: 'VARCHAR', path: '$.town' },
    ]
    await inlet.ok('PATCH', `/v1/views/${draft}`, { definition: { columns: changed } })

    await using ada = await Visitor.first(browser, inlet)
    const { page } = ada
    await page.goto(`/in/${ada.account}/views/${draft}/edit`)
    await page.getByText('Not compared yet').waitFor()
    await page.getByRole('button', { name: 'Compare with stored records' }).click()
    await page.getByText('All 40 records of the last 24 hours were read.').waitFor()
    const counts = page.getByRole('region', { name: 'Counts on stored records' })
    const letters = counts.getByRole('row', { name: /^Dead letters/ })
    expect(await letters.getByRole('cell').allTextContents()).toEqual(['Dead letters', '0', '2', '+2'])
    await page.getByText('the value "seven" of column "id" is not of type BIGINT').first().waitFor()
    await page.getByRole('heading', { name: '38 rows: another value in city' }).waitFor()
    await page.getByRole('region', { name: 'Columns on stored records' }).getByText('new', { exact: true }).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])

    await page.getByRole('textbox', { name: 'Definition' }).focus()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('\n')
    await page.getByText('The definition has changed since').waitFor()

    await inlet.ok('POST', `/v1/views/${draft}/publish`)
    page.once('dialog', (dialog) => void dialog.accept())
    await page.goto(`/in/${ada.account}/views/${draft}/compare`)
    await page.getByRole('button', { name: 'Compare with stored records' }).click()
    await page.getByRole('heading', { name: '2 records: a row before, a dead letter now' }).waitFor()
    expect(ada.complaints).toEqual([])
  })
})
