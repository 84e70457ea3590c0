import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { Installation } from '../test/support/installation.ts'
import { firstLink, openBrowser } from '../test/support/open-browser.ts'
import { findChromium } from '../tools/services/chromium.ts'
import { type Benchmark, cost } from './figures.ts'
import { median } from './measure.ts'

const goal = { ours: 1_000 }

export const benchmark: Benchmark = {
  about:
    'How soon the console can be used: from the navigation to the first field or row on the screen, in a real Chromium. The floor is a page of one script that makes one row.',
  async *measure(options) {
    const visits = options.rounds ?? (options.isQuick ? 3 : 9)
    await using inlet = await Installation.create()
    await inlet.start('start')
    await using browser = await openBrowser(findChromium())
    await using bare = await serveFloor()

    const repeat = async (visit: () => Promise<number>) => {
      const times: number[] = []
      for (let count = 0; count < visits; count++) times.push(await visit())
      return median(times)
    }
    const floor = await repeat(() => coldVisit(browser, bare.url, 'td'))
    const figure = (work: string, ours: number) => cost({ work, unit: 'ms', ours, floor, goal })
    yield figure(
      'sign-in, nothing cached',
      await repeat(() => coldVisit(browser, `${inlet.apiUrl}/sign-in`, 'input[type=password]')),
    )
    const state = await signIn(browser, inlet)
    yield figure('overview, nothing cached', await repeat(() => coldVisit(browser, inlet.apiUrl, 'td', state)))

    const context = await browser.newContext({ storageState: state })
    const page = await context.newPage()
    await visit(page, inlet.apiUrl, 'td')
    yield figure('overview, files cached', await repeat(() => visit(page, inlet.apiUrl, 'td')))
    await context.close()
  },
}

type State = Awaited<ReturnType<typeof signIn>>

async function signIn(from: Browser, inlet: Installation) {
  const context = await from.newContext()
  const page = await context.newPage()
  await page.goto(await firstLink(inlet))
  await page.getByLabel('Your name').fill('Ada')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(/\/in\//)
  const signedIn = await context.storageState()
  await context.close()
  return signedIn
}

/** In a browser that was never here. */
async function coldVisit(from: Browser, url: string, seen: string, storageState?: State): Promise<number> {
  const context = await from.newContext(storageState === undefined ? {} : { storageState })
  const ms = await visit(await context.newPage(), url, seen)
  await context.close()
  return ms
}

/** Returns when the element was there, in ms since the navigation began, as the page itself measures it. */
async function visit(page: Page, url: string, seen: string): Promise<number> {
  await page.goto(url, { waitUntil: 'commit' })
  await page.locator(seen).first().waitFor()
  return page.evaluate<number>('performance.now()')
}

async function serveFloor() {
  const script = "document.body.innerHTML = '<table><tr><td>row</td></tr></table>'"
  const server = createServer((request, response) => {
    const isScript = request.url === '/row.js'
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    response.end(isScript ? script : '<!doctype html><title>floor</title><body><script src="/row.js"></script>')
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/`, [Symbol.asyncDispose]: async () => void server.close() }
}
