/** The first screens while control is slow: nothing moves, nothing is claimed before it is known, nothing that was typed is lost. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { describeInBrowser, layoutShiftMax, openBrowser, recordLayoutShifts, Visitor } from '../support/browser.ts'
import { Installation } from '../support/installation.ts'

describeInBrowser('a slow control', () => {
  let browser: Browser
  let inlet: Installation
  let ada: Visitor
  let held: PromiseWithResolvers<void>
  beforeAll(async () => {
    inlet = await Installation.create()
    ;[browser] = await Promise.all([openBrowser(), inlet.start('start')])
    ada = await Visitor.first(browser, inlet)
    await ada.page.setViewportSize({ width: 380, height: 760 })
    await ada.page.addInitScript(recordLayoutShifts)
  })
  afterAll(async () => {
    await ada?.[Symbol.asyncDispose]()
    await Promise.all([browser?.close(), inlet?.[Symbol.asyncDispose]()])
  })
  beforeEach(async () => {
    held = Promise.withResolvers()
    await ada.page.unrouteAll({ behavior: 'wait' })
    await ada.page.route(/\/auth\/ways|\/v1\/endpoints|endpoint-charts/, async (route) => {
      await held.promise
      await route.continue()
    })
  })

  test('keeps the place of the overview', async () => {
    const { page } = ada
    await page.goto('/')
    await page.getByRole('heading', { name: 'Traffic' }).waitFor()
    expect(await page.getByText('No endpoint yet').count()).toBe(0)
    held.resolve()
    await page.locator('canvas').first().waitFor()
    expect(await page.evaluate<number>('layoutShift')).toBeLessThan(layoutShiftMax)
  })

  test('keeps what is typed at the sign-in, and its place', async () => {
    const { page } = ada
    await page.goto('/sign-in')
    await page.getByLabel('E-mail').waitFor()
    const answered = page.waitForResponse(/\/auth\/ways/)
    await page.keyboard.type('ada@')
    held.resolve()
    await answered
    await page.keyboard.type('example.com')
    expect(await page.getByLabel('E-mail').inputValue()).toBe('ada@example.com')
    expect(await page.evaluate<number>('layoutShift')).toBeLessThan(layoutShiftMax)
  })

  test('keeps the place of a one-time link', async () => {
    const { page } = ada
    // Else only the fragment changes, and the page stays.
    await page.goto('/')
    await page.context().clearCookies()
    await page.goto(`/sign-in#link=${'x'.repeat(32)}`)
    await page.getByLabel('Loading').waitFor()
    held.resolve()
    await page.getByLabel('Your name').waitFor()
    expect(await page.evaluate<number>('layoutShift')).toBeLessThan(layoutShiftMax)
  })
})
