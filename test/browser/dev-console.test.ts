/** `npm run dev:console`: the console from its sources, with the API of a running control. */
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { createServer, type ViteDevServer } from 'vite'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { must } from '#lib/assert.ts'
import { describeInBrowser, firstLink, openBrowser, Visitor } from '../support/browser.ts'
import { Installation } from '../support/installation.ts'

const consoleDirectory = join(import.meta.dirname, '../../console')

describeInBrowser('the console while it is developed', () => {
  let browser: Browser
  let inlet: Installation
  let vite: ViteDevServer
  beforeAll(async () => {
    inlet = await Installation.create()
    ;[browser] = await Promise.all([openBrowser(), inlet.start('start')])
    vi.stubEnv('INLET_CONTROL_URL', inlet.apiUrl)
    vite = await createServer({ configFile: join(consoleDirectory, 'vite.config.ts'), logLevel: 'error', server: { port: 0 } })
    await vite.listen()
  })
  afterAll(async () => {
    vi.unstubAllEnvs()
    await Promise.all([vite?.close(), browser?.close(), inlet?.[Symbol.asyncDispose]()])
  })

  test('signs in through the proxy, and replaces a changed component on the open page', async () => {
    const { port } = must(vite.httpServer, 'a server').address() as AddressInfo
    const link = new URL(await firstLink(inlet))
    link.port = String(port)
    await using ada = await Visitor.open(browser, inlet)
    const logged: string[] = []
    ada.page.on('console', (message) => logged.push(message.text()))
    await ada.enterByLink(link.href, 'Ada')
    await ada.page.getByRole('table').waitFor()
    const file = '/src/pages/overview/overview-page.tsx'
    await vite.reloadModule(must(await vite.moduleGraph.getModuleByUrl(file), file))
    await expect.poll(() => logged).toContain(`[vite] hot updated: ${file}`)
    expect(await ada.page.getByRole('table').isVisible()).toBe(true)
    // The built console, at another port of the same host.
    await ada.page.goto('/')
    await ada.page.waitForURL(`${inlet.apiUrl}/in/**`)
  })
})
