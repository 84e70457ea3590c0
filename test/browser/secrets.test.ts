/** Secrets in the console: made or given, rotated and deleted. A value is shown at most once. */
import { expect } from 'vitest'
import { describeInBrowser, test, Visitor } from '../support/browser.ts'

const value = 'a value that nobody may see'

describeInBrowser('secrets', () => {
  test('one that Inlet makes is shown once, and one that is given never', async ({ browser, inlet }) => {
    await using ada = await Visitor.first(browser, inlet)
    const { page } = ada
    await page.getByRole('link', { name: 'Secrets' }).click()
    await page.getByRole('link', { name: 'Create secret' }).first().click()
    await page.getByLabel('Name').fill('email_key')
    await page.getByRole('button', { name: 'Create secret' }).click()
    const made = await page.locator('figure', { hasText: 'Value' }).locator('code').textContent()
    expect(made).toMatch(/^[\w+/]{43}=$/)
    await page.getByRole('link', { name: 'I have copied the value' }).click()
    await page.getByRole('region', { name: 'Secrets' }).getByText('email_key').waitFor()
    expect(await page.content()).not.toContain(made)

    await page.getByRole('link', { name: 'Rotate' }).click()
    await page.getByLabel('Value', { exact: true }).selectOption('I have a value')
    await page.getByLabel('Your value').fill(value)
    await page.getByRole('button', { name: 'Rotate email_key' }).click()
    await page.getByText("hmac_sha256('email_key', email)").waitFor()
    expect(await page.content()).not.toContain(value)

    await page.getByRole('link', { name: 'All secrets' }).click()
    await page.getByRole('button', { name: 'Delete email_key' }).click()
    await page.getByRole('button', { name: 'Delete secret' }).click()
    await page.getByText('No secret yet').waitFor()
  })
})
