/** From a commit to the bytes of its files. */
import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { describeInBrowser, test, Visitor } from '../support/browser.ts'

describeInBrowser('files of a commit', () => {
  test('a file downloads, and its dialog has an address that Back and a reload keep', async ({ browser, inlet }) => {
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    const { body } = await inlet.ingest(id, '{"event":"order"}')
    await inlet.committed(id, [body.segment_seq])
    await using ada = await Visitor.first(browser, inlet)
    const { page } = ada
    await page.goto(`/in/${ada.account}/endpoints/${id}/commits`)
    await page.getByRole('link', { name: /files/ }).click()
    await page.waitForURL(/commit=/)
    const file = page.getByRole('link', { name: 'Download Raw Parquet' })
    const [download] = await Promise.all([page.waitForEvent('download'), file.click()])
    expect(download.suggestedFilename()).toMatch(/\.parquet$/)
    expect((await readFile(await download.path())).subarray(0, 4).toString()).toBe('PAR1')

    await page.reload()
    await file.waitFor()
    await page.goBack()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.goForward()
    await file.waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    await page.waitForURL(/\/commits$/)

    ada.tolerate(/status of 404/)
    await page.goto(`/in/${ada.account}/endpoints/${id}/commits?commit=none-0`)
    await page.getByRole('heading', { name: 'This commit does not exist' }).waitFor()
  })
})
