/** Clients find the settings that somebody chose in the console. */
import { expect } from 'vitest'
import { describeInBrowser, firstLink, test, Visitor } from '../support/browser.ts'

describeInBrowser('settings of an endpoint', () => {
  test('an endpoint is created and takes MQTT, an error lasts until its field is edited, and a warning is shown', async ({
    browser,
    inlet,
  }) => {
    await using ada = await Visitor.open(browser, inlet)
    const { page } = ada
    ada.tolerate(/status of 4\d\d/)
    // The link is pasted into the page that the address of the console leads to.
    await page.goto('/')
    await page.waitForURL(/\/sign-in$/)
    await page.getByRole('heading', { name: 'Sign in to Inlet' }).waitFor()
    await ada.enterByLink(await firstLink(inlet), 'Ada')

    await page.getByRole('link', { name: 'Endpoints', exact: true }).click()
    await page.getByRole('button', { name: 'Create endpoint' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('default')
    await dialog.getByRole('button', { name: 'Create endpoint' }).click()
    const taken = dialog.getByText(/has this name/)
    await taken.waitFor()
    await dialog.getByLabel('Name').fill('sensors')
    await taken.waitFor({ state: 'detached' })
    await dialog.getByRole('button', { name: 'Create endpoint' }).click()

    await page.getByRole('link', { name: 'Settings', exact: true }).click()
    await page.getByRole('checkbox', { name: 'Accept MQTT' }).click()
    const connections = page.getByLabel('Connections at most, on each node')
    await connections.fill('7')
    await page.getByRole('button', { name: 'Save MQTT settings' }).click()
    await page.getByText('MQTT settings saved').waitFor()
    await page.reload()
    expect(await connections.inputValue()).toBe('7')
    expect(await page.getByRole('checkbox', { name: 'Accept MQTT' }).getAttribute('aria-checked')).toBe('true')

    const columns = [{ name: 'sender', type: 'VARCHAR', path: '$$.key_name' }]
    const { id } = await inlet.endpoint({ bucket: 'lake', view: { name: 'senders', definition: { columns } } })
    await inlet.ok('PATCH', `/v1/endpoints/${id}`, { kept_fields: ['key_name'] })
    await page.goto(`/in/${ada.account}/endpoints/${id}/settings`)
    await page.getByRole('checkbox', { name: 'Keep the name of the API key' }).click()
    await page.getByRole('button', { name: 'Save settings' }).click()
    await page.getByText('version 1 of "senders" reads $$.key_name, which this endpoint does not keep').waitFor()
  })
})
