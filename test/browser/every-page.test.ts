/** Every screen that a link leads to: for screen readers, in both themes, on a narrow phone, without anything that moves. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  accessibilityFindings,
  describeInBrowser,
  layoutShiftMax,
  openBrowser,
  recordLayoutShifts,
  Visitor,
} from '../support/browser.ts'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

const narrow = { width: 380, height: 760 }
const wide = { width: 1280, height: 800 }
const router = readFileSync(join(import.meta.dirname, '../../console/src/router.tsx'), 'utf8')

describeInBrowser('every page', () => {
  let browser: Browser
  let inlet: Installation
  let draft: string
  beforeAll(async () => {
    inlet = await Installation.create()
    ;[browser] = await Promise.all([openBrowser(), inlet.start('start')])
    draft = await fill(inlet)
  })
  afterAll(() => Promise.all([browser?.close(), inlet?.[Symbol.asyncDispose]()]))

  test('has labels and contrast in both themes, fits 380 px, and keeps its place', { timeout: 600_000 }, async () => {
    await using ada = await Visitor.first(browser, inlet)
    await ada.page.addInitScript(recordLayoutShifts)
    const findings: string[] = []
    const seen = new Map<string, string>()
    // Each screen is looked at once. That of a view is of the published one, which has no link to the editor.
    const waiting = [`/in/${ada.account}`, '/me', `/in/${ada.account}/views/${draft}/edit`]
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      const screen = screenOf(path)
      if (seen.has(screen)) continue
      seen.set(screen, path)
      findings.push(...(await look(ada.page, path)).map((finding) => `${screen}: ${finding}`))
      waiting.push(...(await linksOf(ada.page)))
    }
    expect(findings).toEqual([])
    expect(ada.complaints).toEqual([])
    const screens = [...seen.keys()]
    const unseen = routePaths().filter((path) => !screens.some((screen) => screen.endsWith(path)))
    expect(unseen, 'screens that no link leads to').toEqual([])
  })
})

/** Opens a screen at both widths and in both themes. */
async function look(page: Page, path: string): Promise<readonly string[]> {
  const findings: string[] = []
  for (const viewport of [wide, narrow]) {
    await page.setViewportSize(viewport)
    // A theme that fades in would be measured half-way.
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
    await page.goto(path)
    await loaded(page, path)
    const shift = await page.evaluate<number>('layoutShift')
    if (shift > layoutShiftMax) findings.push(`${viewport.width} px: moves by ${shift.toFixed(3)} while it loads`)
    const tooWide = await page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    if (tooWide > 0) findings.push(`${viewport.width} px: scrolls sideways by ${tooWide} px`)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
      findings.push(...(await accessibilityFindings(page)).map((each) => `${viewport.width} px, ${colorScheme}: ${each}`))
    }
  }
  return findings
}

/** Waits until the screen has its heading, and nothing is a placeholder any more. */
async function loaded(page: Page, path: string): Promise<void> {
  await page.locator('h1').first().waitFor()
  // Not `waitForFunction`: it evaluates a text again and again inside the page, whose policy forbids that.
  const isLoaded = async () => (await page.locator('[aria-busy="true"]').count()) === 0
  await until(`${path} to be loaded`, isLoaded, 30_000)
}

async function linksOf(page: Page): Promise<readonly string[]> {
  const links = await page.locator('a[href^="/"]').evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''))
  return links.filter((link) => /^\/(in|me|operate)\b/.test(link))
}

/** The address without what differs from one thing to the next. */
function screenOf(path: string): string {
  return path
    .replace(/[?#].*/, '')
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '$')
    .replace(/\/$/, '')
}

function routePaths(): readonly string[] {
  const paths = [...router.matchAll(/^\s+(?:path: |\{ path: )?'(\/[^']+)'/gm)].map(([, path = '']) => path)
  return paths.filter((path) => path !== '/sign-in').map((path) => path.replace(/\$\w+/g, '$'))
}

/** Something of each kind: an endpoint with a view, records that it takes, and one that it does not. Returns the id of a draft. */
async function fill(inlet: Installation): Promise<string> {
  const columns = [
    { name: 'event', type: 'VARCHAR', path: '$.event' },
    { name: 'at', type: 'TIMESTAMP', path: '$.at', cast_failures: 'dlq' },
  ]
  const { id, viewId } = await inlet.endpoint({ bucket: 'lake', view: { name: 'orders', definition: { columns } } })
  const records = ['{"event":"order","at":"2026-11-20T08:15:30Z","coupon":"x"}', '{"event":"order","at":"yesterday"}']
  const { body } = await inlet.ingest(id, records.join('\n'))
  await inlet.committed(id, [body.segment_seq])
  await inlet.ok('POST', `/v1/views/${viewId}/backfill`, { endpoint_id: id })
  return (await inlet.ok('POST', '/v1/views', { name: 'refunds', definition: { columns } })).id
}
