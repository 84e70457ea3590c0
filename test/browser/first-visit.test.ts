/** A newcomer's whole way: start, sign in by the link, send an event, and see its row in Parquet. */
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeInBrowser, firstLink, openBrowser, Visitor } from '../support/browser.ts'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'

describeInBrowser('a first visit', () => {
  let browser: Browser
  let inlet: Installation
  beforeAll(async () => {
    // Newcomers have no setting at all.
    inlet = await Installation.create({ environment: { INLET_BOOTSTRAP_API_KEY: '' } })
    ;[browser] = await Promise.all([openBrowser(), inlet.startWithNpm()])
  })
  afterAll(() => Promise.all([browser?.close(), inlet?.[Symbol.asyncDispose]()]))

  test('a test event is followed from its acknowledgement to its row in the bucket', async () => {
    await inlet.hurryFirstEndpoint()
    await using ada = await Visitor.open(browser, inlet)
    const { page } = ada
    await ada.enterByLink(await firstLink(inlet), 'Ada')

    // By the keyboard alone: the palette opens the list, the tab key reaches the endpoint.
    await page.getByRole('region', { name: 'Endpoints' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Go to' }).waitFor()
    await page.keyboard.type('endpoints')
    await page.keyboard.press('Enter')
    // The address changes first: until the list is there, the page before has a link of this name, too.
    await page.getByRole('heading', { level: 1, name: 'Endpoints' }).waitFor()
    await page.getByRole('link', { name: 'default' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Test event', exact: true }).click()
    await page.getByRole('button', { name: 'Send test event' }).click()

    await page.getByText(/on disk after/).waitFor()
    const delivered = page.getByText(/^s3:\/\/local\/.*\.parquet$/)
    await delivered.first().waitFor({ timeout: 60_000 })
    const payload = await page.getByText('inlet.test_event').last().textContent()

    // The view of the first start takes it, too.
    expect(await page.getByText('do not fit').count()).toBe(0)
    await page.getByText(/^s3:\/\/local\/.*\/views\/events\/v1\/.*\.parquet$/).waitFor()
    const raw = await page.getByText(/^s3:\/\/local\/.*\/parquet\/.*\.parquet$/).textContent()
    const rows = await readWithDuckDb([join(inlet.buckets, (raw ?? '').replace('s3://', ''))])
    expect(rows.map((row) => String(row['payload']))).toContain(payload)

    // The address has the receipt: another look leads to the same row.
    await page.reload()
    await page.getByText('inlet.test_event').last().waitFor()
    expect(await page.getByText('inlet.test_event').last().textContent()).toBe(payload)
  })
})
