/** An operator makes an account for somebody else, and leads its first owner in. */
import { expect } from 'vitest'
import { describeInBrowser, test, Visitor } from '../support/browser.ts'

describeInBrowser('the first owner of another account', () => {
  test('comes in by a link that the operator gets once, and sees that account alone', async ({ browser, inlet }) => {
    await using ada = await Visitor.first(browser, inlet)
    await ada.page.goto('/operate/accounts/new')
    await ada.page.getByLabel('Name').fill('acme')
    await ada.page.getByRole('button', { name: 'Create account' }).click()
    await ada.page.getByRole('button', { name: 'Invite its first owner' }).click()
    await ada.page.getByRole('button', { name: 'Create invitation' }).click()
    const link = await ada.page.getByRole('dialog').locator('code').textContent()
    await ada.page.getByRole('button', { name: 'Done' }).click()
    await ada.page.getByRole('link', { name: 'I have copied the key' }).click()
    await ada.page.getByRole('heading', { name: 'acme' }).waitFor()

    await using grace = await Visitor.open(browser, inlet)
    await grace.enterByLink(link ?? '', 'Grace')
    await grace.page.getByRole('link', { name: 'People' }).click()
    await grace.page.getByRole('row', { name: /Grace.*owner/ }).waitFor()
    expect(await grace.page.getByRole('row', { name: /Ada/ }).count()).toBe(0)
    expect(await grace.page.getByRole('link', { name: 'Accounts' }).count()).toBe(0)
  })
})
