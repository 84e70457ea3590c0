/**
 * People with a real Chromium in front of an Inlet.
 *
 * Law: what a page logs as an error or throws fails the test, unless the test expects it.
 */
import axe, { type AxeResults } from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { test as base, describe, expect } from 'vitest'
import { Installation } from './installation.ts'
import { leaveToFixtures } from './left-processes.ts'
import { chromiumProgram, firstLink, openBrowser } from './open-browser.ts'

leaveToFixtures()

export { firstLink, openBrowser }

/** Declares a suite that drives a browser. Without one it is skipped, and its name says so. */
export function describeInBrowser(name: string, tests: () => void): void {
  const missing = chromiumProgram === ''
  describe.skipIf(missing)(missing ? `${name} (skipped: INLET_TEST_CHROMIUM is not set, see npm run test:services)` : name, tests)
}

/** Tests that share a browser and a running Inlet with the others of their file. */
export const test = base.extend<{ readonly browser: Browser; readonly inlet: Installation }>({
  browser: [
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads what a fixture needs from its pattern
    async ({}, use) => {
      await using browser = await openBrowser()
      await use(browser)
    },
    { scope: 'file' },
  ],
  inlet: [
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads what a fixture needs from its pattern
    async ({}, use) => {
      await using inlet = await Installation.create()
      await inlet.start('start')
      await use(inlet)
    },
    { scope: 'file' },
  ],
})

const widePx = { width: 1280, height: 800 }

/** Somebody at a browser of their own: cookies and storage are not shared. */
export class Visitor implements AsyncDisposable {
  readonly page: Page
  readonly #context: BrowserContext
  readonly #complaints: string[] = []
  #tolerated: RegExp | undefined

  private constructor(context: BrowserContext, page: Page) {
    this.#context = context
    this.page = page
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') this.#complaints.push(message.text())
    })
    page.on('pageerror', (error) => this.#complaints.push(String(error)))
  }

  static async open(browser: Browser, installation: Installation, viewport = widePx): Promise<Visitor> {
    const context = await browser.newContext({ baseURL: installation.apiUrl, viewport })
    context.setDefaultTimeout(30_000)
    return new Visitor(context, await context.newPage())
  }

  /** Signs in as the first person: an owner and operator. */
  static async first(browser: Browser, installation: Installation, name = 'Ada'): Promise<Visitor> {
    const visitor = await Visitor.open(browser, installation)
    await visitor.enterByLink(await firstLink(installation), name)
    return visitor
  }

  async enterByLink(link: string, name: string): Promise<void> {
    await this.page.goto(link)
    await this.page.getByLabel('Your name').fill(name)
    await this.page.getByRole('button', { name: 'Sign in' }).click()
    await this.page.waitForURL(/\/in\//)
  }

  /** The id of the account whose screen is open. */
  get account(): string {
    return /\/in\/([^/?]+)/.exec(this.page.url())?.[1] ?? ''
  }

  /** Complaints that match are expected, such as those of calls that fail on purpose. */
  tolerate(pattern: RegExp): void {
    this.#tolerated = pattern
  }

  get complaints(): readonly string[] {
    return this.#complaints.filter((text) => this.#tolerated?.test(text) !== true)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close()
    expect(this.complaints, 'what the page complained about').toEqual([])
  }
}

/** Returns what hinders people with assistive technology, as `rule: elements`. */
export async function accessibilityFindings(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<AxeResults>('axe.run()')
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`)
}

/** Bound on layout shifts while a screen loads. Source: https://web.dev/articles/cls, where 0.1 is still good. */
export const layoutShiftMax = 0.02

/** Sums what moved without a hand on it. */
export const recordLayoutShifts = `
  globalThis.layoutShift = 0
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) globalThis.layoutShift += value
  }).observe({ type: 'layout-shift', buffered: true })
`
