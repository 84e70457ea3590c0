/** A person replaces the link by a passkey. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeInBrowser, firstLink, openBrowser, Visitor } from '../support/browser.ts'
import { Installation } from '../support/installation.ts'

describeInBrowser('passkeys', () => {
  let browser: Browser
  let inlet: Installation
  beforeAll(async () => {
    inlet = await Installation.create()
    // A passkey belongs to a host name.
    inlet.configure({ INLET_BASE_URL: inlet.apiUrl.replace('127.0.0.1', 'localhost') })
    ;[browser] = await Promise.all([openBrowser(), inlet.start('start')])
  })
  afterAll(() => Promise.all([browser?.close(), inlet?.[Symbol.asyncDispose]()]))

  test('one that was added signs in, and one that was removed does not', async () => {
    await using ada = await Visitor.open(browser, inlet)
    const { page } = ada
    await plugInAuthenticator(page)
    // The API refuses a session query after the sign-out, and a passkey that is gone.
    ada.tolerate(/status of 4\d\d/)
    await ada.enterByLink(await firstLink(inlet), 'Ada')
    const { origin } = new URL(page.url())
    await page.goto(`${origin}/me`)
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByText('Passkey added').waitFor()

    const signOut = async () => {
      await page.getByRole('button', { name: 'Ada' }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      await page.waitForURL(/\/sign-in/)
    }
    await signOut()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.waitForURL(/\/in\//)

    await page.goto(`${origin}/me`)
    await page.getByRole('region', { name: 'Passkeys' }).getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('button', { name: 'Remove passkey' }).click()
    await page.getByText('No passkey yet').waitFor()
    await signOut()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByRole('alert').waitFor()
    expect(new URL(page.url()).pathname).toBe('/sign-in')
  })
})

/** One that confirms by itself, as a thumb on a reader would. */
async function plugInAuthenticator(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable')
  const verified = { hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true }
  await session.send('WebAuthn.addVirtualAuthenticator', { options: { protocol: 'ctap2', transport: 'internal', ...verified } })
}
