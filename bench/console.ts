/**
 * How soon the console can be used: from the first byte asked for to the first field or row on the screen, in a real Chromium. The floor is
 * a page of one script that makes one row. `node bench/console.ts [visits]`
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { must } from '#lib/assert.ts'
import { firstLink, openBrowser } from '../test/support/browser.ts'
import { Installation } from '../test/support/installation.ts'
import { findChromium } from '../tools/services/chromium.ts'

const visits = Number(process.argv[2] ?? 9)
const goalMs = 1_000

await using inlet = await Installation.create()
await inlet.start('start')
await using browser = await openBrowser(findChromium())
await using floor = await serveFloor()

const floorMs = await median(() => coldVisit(browser, floor.url, 'td'))
report('floor: one row made by one script', floorMs)
report('sign-in, nothing cached', await median(() => coldVisit(browser, `${inlet.apiUrl}/sign-in`, 'input[type=password]')))
const state = await signIn(browser)
report('overview, nothing cached', await median(() => coldVisit(browser, inlet.apiUrl, 'td', state)))
report('overview, files cached', await warmVisits(browser, state))

function report(what: string, ms: number): void {
  const against =
    ms === floorMs ? '' : `, ${(ms / floorMs).toFixed(1)} times the floor${ms > goalMs ? `: over the goal of ${goalMs} ms` : ''}`
  console.log(`  ${what.padEnd(36)} ${ms.toFixed(0).padStart(5)} ms${against}`)
}

async function median(visit: () => Promise<number>): Promise<number> {
  const times: number[] = []
  for (let count = 0; count < visits; count++) times.push(await visit())
  return must(times.toSorted((a, b) => a - b)[Math.floor(visits / 2)], 'a visit')
}

type State = Awaited<ReturnType<typeof signIn>>

async function signIn(from: Browser) {
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

async function warmVisits(from: Browser, storageState: State): Promise<number> {
  const context = await from.newContext({ storageState })
  const page = await context.newPage()
  await visit(page, inlet.apiUrl, 'td')
  const ms = await median(() => visit(page, inlet.apiUrl, 'td'))
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
