/** A draft is counted on live data before anything is published. */
import { expect } from 'vitest'
import { accessibilityFindings, describeInBrowser, test, Visitor } from '../support/browser.ts'
import { until } from '../support/until.ts'

describeInBrowser('a shadow', () => {
  test('starts from a draft, shows its figures, and ends', async ({ browser, inlet }) => {
    const columns = [{ name: 'amount', type: 'VARCHAR', path: '$.amount' }]
    const { id, viewId } = await inlet.endpoint({
      bucket: 'lake',
      view: { name: 'sales', definition: { columns } },
    })
    await inlet.ok('PATCH', `/v1/endpoints/${id}`, { name: 'shop' })
    const { id: draft } = await inlet.ok('POST', `/v1/views/${viewId}/versions`)
    const strict = [{ name: 'amount', type: 'BIGINT', path: '$.amount', cast_failures: 'dlq' }]
    await inlet.ok('PATCH', `/v1/views/${draft}`, { definition: { columns: strict } })
    await using ada = await Visitor.first(browser, inlet)
    const { page } = ada
    await page.goto(`/in/${ada.account}/views/${draft}/endpoints`)
    await page.getByRole('button', { name: 'Shadow an endpoint' }).click()
    await page.getByRole('menuitem', { name: 'shop' }).click()
    const table = page.getByRole('region', { name: 'Shadows' })
    await table.getByText('shop').waitFor()

    await until('the shadow to be counted', async () => {
      const { body } = await inlet.ingest(id, '{"amount":1}\n{"amount":2}\n{"amount":3}\n{"amount":"many"}')
      await inlet.committed(id, [body.segment_seq])
      return (await inlet.ok('GET', `/v1/views/${draft}/metrics`)).aggregated.all_time.processed > 0
    })
    const markers = await inlet.markers('lake', id)
    expect(markers.at(-1)?.views).toMatchObject([{ view_version: 1 }, { view_version: 2, is_shadow: true }])
    expect(Object.keys(markers.at(-1)?.artifacts ?? {}).filter((kind) => kind.includes('/v2'))).toEqual([])
    await page.reload()
    await table.getByText('25 %').waitFor()
    expect(await accessibilityFindings(page)).toEqual([])

    await page.goto(`/in/${ada.account}/views/${draft}/edit`)
    await page.getByRole('textbox', { name: 'Definition' }).focus()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(JSON.stringify({ columns }))
    await page.getByRole('button', { name: 'Save draft' }).click()
    await page.getByText('Saved, but a shadow keeps its definition').waitFor()
    await page.getByText('the shadow at "shop" keeps the definition that it started with').waitFor()
    await page.goto(`/in/${ada.account}/views/${draft}/endpoints`)
    await page.getByRole('button', { name: 'End the shadow at shop' }).click()
    await page.getByRole('button', { name: 'End shadow' }).click()
    await table.waitFor({ state: 'detached' })
    expect(ada.complaints).toEqual([])
  })
})
