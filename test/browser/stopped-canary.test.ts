/** A canary that does worse is stopped by its rule, and people see why. */
import { expect } from 'vitest'
import { accessibilityFindings, describeInBrowser, test, Visitor } from '../support/browser.ts'
import { until } from '../support/until.ts'

describeInBrowser('a canary that stops by itself', () => {
  test('is detached after it rejected what the other version accepts, and both versions say so', async ({ browser, inlet }) => {
    const columns = [{ name: 'amount', type: 'VARCHAR', path: '$.amount' }]
    const { id, viewId } = await inlet.endpoint({ bucket: 'lake', view: { name: 'sales', definition: { columns } } })
    const { id: canary } = await inlet.ok('POST', `/v1/views/${viewId}/versions`)
    const strict = [{ name: 'amount', type: 'BIGINT', path: '$.amount', cast_failures: 'dlq' }]
    await inlet.ok('PATCH', `/v1/views/${canary}`, { definition: { columns: strict } })
    await inlet.ok('POST', `/v1/views/${canary}/publish`)
    await using ada = await Visitor.first(browser, inlet)
    const { page } = ada
    await page.goto(`/in/${ada.account}/views/${canary}/endpoints`)
    await page.getByRole('button', { name: 'Attach version' }).first().click()
    await page.getByText('Stop it by itself').waitFor()
    await page.keyboard.press('Escape')

    const attachment = { view_id: canary, canary_rule: { min_records: 10 } }
    const binding = await inlet.ok('POST', `/v1/endpoints/${id}/views`, attachment)
    expect(binding.canary_rule).toMatchObject({ min_records: 10, dead_letters_pct: 1 })
    const { body } = await inlet.ingest(id, Array(20).fill('{"amount":"many"}').join('\n'))
    await inlet.committed(id, [body.segment_seq])
    await until(
      'the canary to be stopped',
      async () => {
        const { items } = await inlet.ok('GET', `/v1/endpoints/${id}/views`)
        return items.some((each: { stopped_reason: string | null }) => each.stopped_reason !== null)
      },
      30_000,
    )
    await page.reload()
    await page.getByText(/^The canary at .+ was stopped$/).waitFor()
    await page.getByText('100 % of its records became dead letters, and 0 % with version 1').waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await page.goto(`/in/${ada.account}/views/${viewId}/endpoints`)
    await page.getByText(/^The canary of version 2 at .+ was stopped$/).waitFor()
    await page.goto(`/in/${ada.account}/audit`)
    await page.getByText('Inlet, by a rule').first().waitFor()
    expect(ada.complaints).toEqual([])
  })
})
