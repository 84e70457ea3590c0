/** Size of everything that a browser loads before a person sees their data. */
import type { Browser, Request } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeInBrowser, firstLink, openBrowser, Visitor } from '../support/browser.ts'
import { Installation } from '../support/installation.ts'

const scriptBytesMax = 180_000

describeInBrowser('the weight of the console', () => {
  let browser: Browser
  let inlet: Installation
  let ada: Visitor
  const scripts = new Map<string, Promise<number>>()
  const origins = new Set<string>()
  beforeAll(async () => {
    inlet = await Installation.create()
    ;[browser] = await Promise.all([openBrowser(), inlet.start('start')])
    ada = await Visitor.open(browser, inlet)
    const weigh = (request: Request) => {
      origins.add(new URL(request.url()).origin)
      if (request.resourceType() === 'script')
        scripts.set(
          request.url(),
          request.sizes().then(({ responseBodySize }) => responseBodySize),
        )
    }
    ada.page.on('requestfinished', weigh)
    await ada.enterByLink(await firstLink(inlet), 'Ada')
    await ada.page.getByRole('table').waitFor()
    await ada.page.waitForLoadState('networkidle')
    // Later responses would be asked for their size while the browser closes.
    ada.page.off('requestfinished', weigh)
  })
  afterAll(async () => {
    await ada?.[Symbol.asyncDispose]()
    await Promise.all([browser?.close(), inlet?.[Symbol.asyncDispose]()])
  })

  test('sign-in and overview are under 180 kB of compressed scripts, from this origin alone', async () => {
    const bytes = (await Promise.all(scripts.values())).reduce((sum, size) => sum + size, 0)
    expect(bytes).toBeGreaterThan(50_000)
    expect(bytes).toBeLessThan(scriptBytesMax)
    expect([...origins]).toEqual([inlet.apiUrl])
  })

  test('the overview asks for its data before its scripts are there, and once', async () => {
    const released = Promise.withResolvers<void>()
    await ada.page.route('**/console/assets/*.js', async (route) => {
      await released.promise
      await route.continue()
    })
    const asked: string[] = []
    ada.page.on('response', (response) => {
      const { pathname, search } = new URL(response.url())
      if (pathname.startsWith('/v1/')) asked.push(pathname + search)
    })
    await ada.page.goto('/', { waitUntil: 'commit' })
    await expect.poll(() => asked.toSorted()).toEqual(['/v1/endpoints?limit=200', '/v1/session'])
    // Without any other answer the table shows what was asked for ahead.
    await ada.page.route('**/v1/**', (route) => route.abort())
    ada.tolerate(/ERR_FAILED/)
    released.resolve()
    await ada.page.getByRole('table').waitFor()
  })
})
