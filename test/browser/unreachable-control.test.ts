/** The console while control fails: it says what is wrong, and goes on by itself. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeInBrowser, openBrowser, Visitor } from '../support/browser.ts'
import { Installation } from '../support/installation.ts'

describeInBrowser('control that fails', () => {
  let browser: Browser
  let inlet: Installation
  beforeAll(async () => {
    inlet = await Installation.create()
    ;[browser] = await Promise.all([openBrowser(), inlet.start('control', 'ingest')])
  })
  afterAll(() => Promise.all([browser?.close(), inlet?.[Symbol.asyncDispose]()]))

  test('control that ends is named, and its return needs no reload', async () => {
    await using ada = await Visitor.first(browser, inlet)
    ada.tolerate(/Failed to load resource|ERR_CONNECTION_REFUSED/)
    await ada.page.getByRole('table').waitFor()
    // The charts are loaded after the table.
    await ada.page.getByRole('img').first().waitFor()
    await inlet.kill('control')
    const alert = ada.page.getByRole('alert').getByText('Control does not respond')
    await alert.waitFor()
    // Data that was read before stays on the screen.
    await ada.page.getByRole('table').waitFor()
    await inlet.start('control')
    await alert.waitFor({ state: 'detached' })
  })

  test('a screen that was not loaded yet opens when control is back', async () => {
    await using ada = await Visitor.open(browser, inlet)
    const { log } = await inlet.run('sign-in-link')
    await ada.enterByLink(log.match(/http\S+#link=\w+/g)?.at(-1) ?? '', 'Mary')
    ada.tolerate(/Failed to load resource|ERR_CONNECTION_REFUSED|ScreenNotLoaded|Unable to preload CSS/)
    await ada.page.getByRole('img').first().waitFor()
    await inlet.kill('control')
    await ada.page.getByRole('link', { name: 'Views', exact: true }).click()
    await ada.page.getByRole('alert').getByText('This screen could not be loaded').waitFor()
    await inlet.start('control')
    await ada.page.getByRole('heading', { level: 1, name: 'Views' }).waitFor()
  })

  test('tables that cannot be listed are not taken for none, and appear when control is back', async () => {
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    await using ada = await Visitor.open(browser, inlet)
    const { log } = await inlet.run('sign-in-link')
    await ada.enterByLink(log.match(/http\S+#link=\w+/g)?.at(-1) ?? '', 'Joan')
    ada.tolerate(/status of 503/)
    const { name } = await inlet.ok('GET', `/v1/endpoints/${id}`)
    const unavailable = {
      type: 'about:blank',
      title: 'Service Unavailable',
      status: 503,
      error: 'unavailable',
      detail: 'no database',
    }
    await ada.page.route('**/v1/views*', (route) => route.fulfill({ status: 503, json: unavailable }))
    await ada.page.goto(`/in/${ada.account}/explore`)
    const alert = ada.page.getByRole('alert').filter({ hasText: 'No database.' })
    await alert.waitFor()
    expect(await ada.page.getByText('No table yet').count()).toBe(0)
    await ada.page.unroute('**/v1/views*')
    await ada.page.getByText(name).waitFor()
    await alert.waitFor({ state: 'detached' })
  })

  test('a screen that a newer release no longer has makes the page load again', async () => {
    await using ada = await Visitor.open(browser, inlet)
    const { log } = await inlet.run('sign-in-link')
    await ada.enterByLink(log.match(/http\S+#link=\w+/g)?.at(-1) ?? '', 'Ida')
    ada.tolerate(/Failed to load resource|MIME type|dynamically imported module|ScreenNotLoaded/)
    await ada.page.getByRole('table').waitFor()
    const loads: string[] = []
    // Requests, not `load` events: the event of the first page may come after the click.
    ada.page.on('request', (request) => {
      if (request.isNavigationRequest()) loads.push(request.url())
    })
    const gone = '**/assets/keys-page-*.js'
    await ada.page.route(gone, (route) => (loads.length === 0 ? route.fulfill({ status: 404 }) : route.continue()))
    await ada.page.getByRole('link', { name: 'API keys' }).click()
    await ada.page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor()
    expect(loads).toEqual([expect.stringMatching(/\/keys$/)])
  })

  test('the problem that control answers is shown in its own words, with a way on', async () => {
    await using ada = await Visitor.open(browser, inlet)
    const { log } = await inlet.run('sign-in-link')
    await ada.enterByLink(log.match(/http\S+#link=\w+/g)?.at(-1) ?? '', 'Grace')
    ada.tolerate(/status of 503/)
    await ada.page.getByRole('table').waitFor()
    const detail = 'the database does not respond: look into its log'
    await ada.page.route('**/v1/endpoints*', (route) =>
      route.fulfill({
        status: 503,
        contentType: 'application/problem+json',
        json: { type: 'about:blank', title: 'Service unavailable', status: 503, error: 'unavailable', detail },
      }),
    )
    await ada.page.reload()
    const alert = ada.page.getByRole('alert').filter({ hasText: 'The database does not respond: look into its log.' })
    await alert.waitFor()
    await ada.page.unroute('**/v1/endpoints*')
    await alert.getByRole('button', { name: 'Try again' }).click()
    await ada.page.getByRole('table').waitFor()
    await alert.waitFor({ state: 'detached' })
  })
})
