/** Backfills and re-drives are paused, resumed and canceled while they run. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeInBrowser, openBrowser, Visitor } from '../support/browser.ts'
import { Installation } from '../support/installation.ts'

const columns = (cast_failures: 'dlq' | 'null') => ({
  columns: [{ name: 'amount', type: 'INTEGER', path: '$.amount', cast_failures }],
})

describeInBrowser('jobs', () => {
  let browser: Browser
  let inlet: Installation
  beforeAll(async () => {
    inlet = await Installation.create()
    ;[browser] = await Promise.all([openBrowser(), inlet.start('control', 'ingest', 'delivery')])
  })
  afterAll(() => Promise.all([browser?.close(), inlet?.[Symbol.asyncDispose]()]))

  test('a backfill is paused and goes on, and a re-drive is canceled', async () => {
    const { id, viewId } = await inlet.endpoint({ bucket: 'lake', view: { name: 'orders', definition: columns('dlq') } })
    const { body } = await inlet.ingest(id, '{"amount":1}\n{"amount":"x"}')
    await inlet.committed(id, [body.segment_seq])
    const { id: repaired } = await inlet.ok('POST', `/v1/views/${viewId}/versions`, { copy_from_version: 1 })
    await inlet.ok('PATCH', `/v1/views/${repaired}`, { definition: columns('null') })
    await inlet.ok('POST', `/v1/views/${repaired}/publish`)
    // Without a node that delivers, jobs run until one is back.
    await inlet.kill('delivery')
    const backfill = await inlet.ok('POST', `/v1/views/${repaired}/backfill`, { endpoint_id: id })

    await using ada = await Visitor.first(browser, inlet)
    const { page } = ada
    const status = page.getByRole('heading', { level: 1 })
    await page.goto(`/in/${ada.account}/jobs/${backfill.id}`)
    await page.getByRole('button', { name: 'Pause job' }).click()
    await status.getByText('paused').waitFor()
    await page.getByRole('button', { name: 'Resume job' }).click()
    await status.getByText('running').waitFor()
    await inlet.start('delivery')
    await status.getByText('succeeded').waitFor()
    await page.getByText('1 of 1 segments').waitFor()
    expect(await page.getByRole('button', { name: /job$/ }).count()).toBe(0)

    await inlet.kill('delivery')
    const { id: third } = await inlet.ok('POST', `/v1/views/${repaired}/versions`, { copy_from_version: 2 })
    await inlet.ok('POST', `/v1/views/${third}/publish`)
    const redrive = await inlet.ok('POST', `/v1/views/${third}/redrive`, { endpoint_id: id, from_version: 1 })
    await page.goto(`/in/${ada.account}/jobs/${redrive.id}`)
    await page.getByRole('button', { name: 'Cancel job' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel job' }).click()
    await status.getByText('canceled').waitFor()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await page.getByRole('button', { name: /job$/ }).count()).toBe(0)
  })
})
