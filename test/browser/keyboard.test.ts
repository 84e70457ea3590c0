/** The console without a mouse: each place, dialog and menu. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { describeInBrowser, openBrowser, Visitor } from '../support/browser.ts'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

const narrow = { width: 380, height: 760 }

describeInBrowser('the keyboard', () => {
  let browser: Browser
  let inlet: Installation
  let ada: Visitor
  let page: Page
  let home: string
  let ids: Awaited<ReturnType<Installation['endpoint']>>
  beforeAll(async () => {
    inlet = await Installation.create()
    ;[browser] = await Promise.all([openBrowser(), inlet.start('start')])
    const definition = { columns: [{ name: 'event', type: 'VARCHAR', path: '$.event' }] }
    ids = await inlet.endpoint({ bucket: 'lake', view: { name: 'orders', definition } })
    const { body } = await inlet.ingest(ids.id, '{"event":"order","coupon":"x"}')
    await inlet.committed(ids.id, [body.segment_seq])
    ada = await Visitor.first(browser, inlet)
    page = ada.page
    home = `/in/${ada.account}`
  })
  afterAll(async () => {
    await ada?.[Symbol.asyncDispose]()
    await Promise.all([browser?.close(), inlet?.[Symbol.asyncDispose]()])
  })

  test('skips the navigation', async () => {
    await page.goto(home)
    await page.locator('h1').waitFor()
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('Skip to content')
    await page.keyboard.press('Enter')
    await page.locator('main:focus').waitFor()
  })

  test('reaches each place of the navigation by its name', async () => {
    const links = page.locator('aside nav a')
    const places = await links.evaluateAll((all) => all.map((link) => [link.textContent, link.getAttribute('href')] as const))
    expect(places.length).toBeGreaterThan(10)
    for (const [label, href] of places) {
      // Places of the installation do not have those of an account beside them.
      await page.goto(home)
      // Requests of a screen that still loads would ask for the account from a place without one.
      await page.locator('canvas').first().waitFor()
      await page.keyboard.press('Control+k')
      await page.getByRole('dialog', { name: 'Go to' }).waitFor()
      await page.keyboard.type(label ?? '')
      await page.keyboard.press('Enter')
      await page.waitForURL((url) => url.pathname === href)
    }
  })

  test.each([
    ['create key', 'Create key', () => 'keys/new'],
    ['orders', 'orders v1', () => `views/${ids.viewId}`],
  ])('reaches what is called “%s”', async (typed, label, path) => {
    await page.goto(home)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog', { name: 'Go to' }).waitFor()
    await page.keyboard.type(typed)
    await page.getByRole('option', { name: label }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.pathname === `${home}/${path()}`)
  })

  test('passes a link of the installation without leaving the account', async () => {
    await page.goto(home)
    await page.locator('canvas').first().waitFor()
    const loaded = page.waitForResponse(/\/nodes-page-/)
    await page.locator('aside nav').getByRole('link', { name: 'Nodes' }).focus()
    await loaded
    const request = await page.waitForRequest(/\/v1\/endpoints\?/)
    expect(request.headers()['inlet-account']).toBe(ada.account)
  })

  describe('types right after Ctrl K, while the palette is loading', () => {
    let released: PromiseWithResolvers<void>
    beforeEach(async () => {
      released = Promise.withResolvers()
      await page.goto(home)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.route('**/assets/palette-*.js', async (route) => {
        await released.promise
        await route.continue()
      })
    })
    afterEach(() => page.unrouteAll({ behavior: 'wait' }))

    test('and reads what was typed before and after it came', async () => {
      await page.keyboard.press('Control+k')
      await page.keyboard.type('create')
      released.resolve()
      await page.keyboard.type(' key', { delay: 30 })
      await page.getByRole('option', { name: 'Create key' }).waitFor()
      expect(await page.getByRole('combobox', { name: 'Go to' }).inputValue()).toBe('create key')
    })

    test('and goes there if Enter was pressed before it came', async () => {
      await page.keyboard.press('Control+k')
      await page.keyboard.type('create key')
      await page.keyboard.press('Enter')
      released.resolve()
      await page.waitForURL((url) => url.pathname === `${home}/keys/new`)
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    })

    test('and Escape gives it up', async () => {
      const button = page.getByRole('button', { name: /^Go to/ })
      await button.focus()
      await page.keyboard.press('Enter')
      await page.keyboard.type('create')
      await page.keyboard.press('Escape')
      released.resolve()
      await expect.poll(() => focused(page)).toMatch(/^Go to…/)
      expect(await page.getByPlaceholder('Go to…').count()).toBe(0)
    })
  })

  describe('submits with Enter', () => {
    test('an endpoint that is created and deleted again', async () => {
      await page.goto(`${home}/endpoints`)
      await page.getByRole('button', { name: 'Create endpoint' }).first().press('Enter')
      const submit = page.getByRole('dialog').getByRole('button', { name: 'Create endpoint' })
      await until('what is proposed is there', () => submit.isEnabled())
      await page.getByRole('dialog').getByLabel('Name').fill('short-lived')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'short-lived' }).waitFor()
      await page.goto(`${new URL(page.url()).pathname}/settings`)
      await page.getByRole('button', { name: 'Delete endpoint' }).press('Enter')
      const field = page.getByRole('dialog').getByRole('textbox')
      await field.fill('short')
      await page.keyboard.press('Enter')
      expect(await field.inputValue()).toBe('short')
      await field.fill('short-lived')
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await page.waitForURL((url) => url.pathname === `${home}/endpoints`)
    })

    test('an invitation', async () => {
      await page.goto(`${home}/people`)
      await page.getByRole('button', { name: 'Invite somebody' }).press('Enter')
      await page.getByRole('dialog').getByRole('textbox').first().fill('grace@example.com')
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').getByText('/sign-in#link=').first().waitFor()
    })
  })

  describe('opens, and Escape closes and gives the focus back', () => {
    test.each([
      ['the palette', 'dialog', '', /^Go to/],
      ['the menu of the person', 'menu', '', 'Ada'],
      ['a new endpoint', 'dialog', '/endpoints', 'Create endpoint'],
      ['the files of a commit', 'dialog', '/endpoints/$endpoint/commits', / files$/],
      ['the end of an endpoint', 'dialog', '/endpoints/$endpoint/settings', 'Delete endpoint'],
      ['the end of a version', 'dialog', '/views/$view', 'Archive version'],
      ['the endpoints of a version', 'dialog', '/views/$view/endpoints', /^Attach/],
      ['a column to add', 'dialog', '/quality/$view', /^Add as column/],
      ['a backfill', 'dialog', '/quality/$view/jobs', /^Backfill/],
      ['an invitation', 'dialog', '/people', 'Invite somebody'],
      ['the menu of a member', 'menu', '/people', 'Change Ada'],
    ] as const)('%s', async (_what, role, path, name) => {
      await page.goto(`${home}${path.replace('$endpoint', ids.id).replace('$view', ids.viewId ?? '')}`)
      // Dialogs with an address of their own are opened by a link.
      const opener = page.getByRole('button', { name, exact: true }).or(page.getByRole('link', { name, exact: true }))
      await opensAndCloses(page, opener.first(), role)
    })

    test('the menu of a narrow screen', async () => {
      await page.setViewportSize(narrow)
      await page.goto(home)
      await opensAndCloses(page, page.getByRole('button', { name: 'Menu', exact: true }), 'dialog')
    })
  })
})

async function opensAndCloses(page: Page, opener: ReturnType<Page['getByRole']>, role: 'dialog' | 'menu'): Promise<void> {
  const popup = page.getByRole(role)
  // The second time its parts are there already.
  for (const _time of ['first', 'second']) {
    await opener.focus()
    const before = await focused(page)
    await page.keyboard.press('Enter')
    await page.locator(`[role=${role}]:focus, [role=${role}] :focus`).waitFor()
    if (role === 'dialog') expect(await tabThrough(page)).toEqual([])
    await page.keyboard.press('Escape')
    await popup.waitFor({ state: 'detached' })
    await expect.poll(() => focused(page)).toBe(before)
  }
}

/** More than most dialogs have stops: each part of a date is one. */
const tabsMax = 20

/** Returns what is wrong with the way of Tab through an open dialog. */
async function tabThrough(page: Page): Promise<readonly string[]> {
  const stops = new Map<string, boolean>()
  for (let tab = 0; tab < tabsMax; tab++) {
    await page.keyboard.press('Tab')
    // At both ends stand guards, which pass the focus on in the next frame.
    await expect.poll(() => page.evaluate<boolean>(`document.activeElement.closest('[role=dialog]') !== null`)).toBe(true)
    stops.set(await focused(page), await page.evaluate<boolean>(showsFocus))
  }
  // A single stop needs no ring.
  return stops.size === 1 ? [] : [...stops].flatMap(([name, isShown]) => (isShown ? [] : `no focus ring: ${name}`))
}

const showsFocus = `(() => {
  const { outlineStyle, boxShadow } = getComputedStyle(document.activeElement)
  return outlineStyle !== 'none' || boxShadow !== 'none'
})()`

/** Returns the name of what has the focus. */
function focused(page: Page): Promise<string> {
  return page.evaluate<string>(`document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? ''`)
}
