/** Clients find the settings that somebody chose in the console. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeInBrowser, firstLink, openBrowser, Visitor } from '../support/browser.ts'
import { Installation } from '../support/installation.ts'

describeInBrowser('settings of an endpoint', () => {
  let browser: Browser
  let inlet: Installation
  beforeAll(async () => {
    inlet = await Installation.create()
    ;[browser] = await Promise.all([openBrowser(), inlet.start('start')])
  })
  afterAll(() => Promise.all([browser?.close(), inlet?.[Symbol.asyncDispose]()]))

  test('an endpoint is created and takes MQTT, and an error lasts until its field is edited', async () => {
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
  })
})
