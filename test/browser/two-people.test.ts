/** Two people in one account at the same time. */
import { expect } from 'vitest'
import { describeInBrowser, test, Visitor } from '../support/browser.ts'

describeInBrowser('two people at once', () => {
  test('each sees what the other does, and a role that is taken away closes what it opened', async ({ browser, inlet }) => {
    await using ada = await Visitor.first(browser, inlet)
    await ada.page.getByRole('link', { name: 'People' }).click()
    await ada.page.getByRole('button', { name: 'Invite somebody' }).click()
    await ada.page.getByRole('button', { name: 'Create invitation' }).click()
    const link = await ada.page.getByRole('dialog').locator('code').textContent()
    await ada.page.getByRole('button', { name: 'Done' }).click()

    await using grace = await Visitor.open(browser, inlet)
    await grace.enterByLink(link ?? '', 'Grace')
    // Nobody touches the first browser: it asks again by itself.
    await ada.page.getByRole('row', { name: /Grace.*member/ }).waitFor()

    await grace.page.getByRole('link', { name: 'API keys' }).click()
    await grace.page.getByRole('link', { name: 'Create key' }).click()
    await grace.page.getByLabel('Name').fill('from Grace')
    await ada.page.getByRole('button', { name: 'Change Grace' }).click()
    await ada.page.getByRole('menuitem', { name: /viewer/i }).click()
    await ada.page.getByRole('row', { name: /Grace.*viewer/ }).waitFor()

    grace.tolerate(/status of 403/)
    await grace.page.getByRole('button', { name: 'Create key' }).click()
    await grace.page.getByText('Only members of the account can do this').waitFor()
    await grace.page.getByRole('navigation').getByRole('link', { name: 'API keys' }).waitFor({ state: 'detached' })

    await ada.page.getByRole('button', { name: 'Change Grace' }).click()
    await ada.page.getByRole('menuitem', { name: 'Remove from the account' }).click()
    await ada.page.getByRole('button', { name: 'Remove person' }).click()
    await ada.page.getByRole('row', { name: /Grace/ }).waitFor({ state: 'detached' })
    await grace.page.goto('/')
    await grace.page.waitForURL(/\/me$/)
    expect(await grace.page.getByRole('link', { name: 'Overview' }).count()).toBe(0)
  })
})
