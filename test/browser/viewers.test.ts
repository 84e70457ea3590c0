/** Somebody who may look, and change nothing. */
import { expect } from 'vitest'
import { describeInBrowser, test, Visitor } from '../support/browser.ts'

const definition = { columns: [{ name: 'event', type: 'VARCHAR', path: '$.event' }] }

describeInBrowser('viewers', () => {
  test('a viewer reads who can change something, instead of a form that the API refuses', async ({ browser, inlet }) => {
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    const { id: draft } = await inlet.ok('POST', '/v1/views', { name: 'orders', definition })
    await using ada = await Visitor.first(browser, inlet)
    await ada.page.getByRole('link', { name: 'People' }).click()
    await ada.page.getByRole('button', { name: 'Invite somebody' }).click()
    await ada.page.getByLabel('Role').selectOption('viewer')
    await ada.page.getByRole('button', { name: 'Create invitation' }).click()
    const link = await ada.page.getByRole('dialog').locator('code').textContent()

    // A call that is refused is a complaint of the page, and fails the test.
    await using grace = await Visitor.open(browser, inlet)
    await grace.enterByLink(link ?? '', 'Grace')
    const { page } = grace
    const place = `/in/${grace.account}`
    for (const path of ['destinations/new', 'views/new', `views/${draft}/edit`, 'keys/new', 'audit']) {
      await page.goto(`${place}/${path}`)
      await page.getByRole('heading', { name: 'Only members of the account can do this' }).waitFor()
      expect(await page.getByRole('main').getByRole('button').count(), path).toBe(0)
    }
    await page.goto(`${place}/views/${draft}/edit`)
    await page.getByRole('link', { name: 'Open version' }).click()
    await page.getByRole('heading', { name: 'orders' }).waitFor()
    await page.goto(`${place}/endpoints/${id}`)
    await page.getByText('ask a member of the account for an API key').waitFor()
    expect(await page.getByText('Send a test event').count()).toBe(0)
    await page.goto('/operate/nodes')
    await page.getByRole('heading', { name: 'Only operators of the installation can see this' }).waitFor()
  })

  test('the address of something that was deleted says so, and leads on', async ({ browser, inlet }) => {
    const { log } = await inlet.run('sign-in-link')
    await using joan = await Visitor.open(browser, inlet)
    await joan.enterByLink(log.match(/http\S+#link=\w+/g)?.at(-1) ?? '', 'Joan')
    joan.tolerate(/status of 404/)
    const { page } = joan
    const unknown = '01890000-0000-7000-8000-000000000000'
    for (const noun of ['endpoint', 'destination', 'view', 'job']) {
      await page.goto(`/in/${joan.account}/${noun}s/${unknown}`)
      await page.getByRole('heading', { name: `This ${noun} does not exist` }).waitFor()
      expect(await page.getByRole('navigation', { name: /endpoint|view/i }).count()).toBe(0)
      await page.getByRole('link', { name: `Go to the ${noun}s` }).click()
      await page.waitForURL(new RegExp(`/${noun}s$`))
    }
    for (const noun of ['node', 'account']) {
      await page.goto(`/operate/${noun}s/${unknown}`)
      await page.getByRole('heading', { name: `This ${noun} does not exist` }).waitFor()
    }
  })
})
