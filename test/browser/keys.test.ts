/** A key from its creation to its end, and what people see who may not create one. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { describeInBrowser, test, Visitor } from '../support/browser.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)

describeInBrowser('API keys', () => {
  test('a key for one endpoint works as its example is pasted until it is revoked; viewers are told', async ({
    browser,
    inlet,
  }) => {
    await Promise.all([inlet.endpoint({ bucket: 'lake' }), inlet.endpoint({ bucket: 'pond' })])
    await using ada = await Visitor.first(browser, inlet)
    const { page, account } = ada
    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('link', { name: 'Create key' }).click()
    await page.getByLabel('Name').fill('thermometers')
    await page.getByLabel('Endpoints', { exact: true }).selectOption('Only some endpoints')
    await page.getByRole('group', { name: 'Which endpoints' }).getByRole('checkbox').first().click()
    await page.getByRole('button', { name: 'Create key' }).click()

    const example = await page.locator('figure', { hasText: 'curl' }).locator('code').textContent()
    await page.getByText('Waiting for the first use').waitFor()
    const sent = () => run('sh', ['-c', `${example} --silent --write-out '%{http_code}'`])
    // A node knows a new key within two seconds.
    await until('the key to be known', async () => /"accepted_records":1.*202$/.test((await sent()).stdout))
    await page.getByText('The key works').waitFor()

    await page.getByRole('link', { name: 'I have copied the key' }).click()
    await page.getByRole('button', { name: 'Revoke thermometers' }).click()
    await page.getByRole('button', { name: 'Revoke key' }).click()
    await page.getByText('Key “thermometers” revoked').waitFor()
    await until('the key to be refused', async () => (await sent()).stdout.endsWith('401'))
    await page.getByRole('switch', { name: 'Show revoked keys' }).click()
    await page.getByRole('button', { name: 'End what thermometers opened' }).click()
    await page.getByRole('button', { name: 'End it' }).click()
    await page.getByText('What “thermometers” opened has ended').waitFor()

    const headers = { 'inlet-account': account }
    const invitation = await page.request.post('/v1/invitations', {
      headers,
      data: { email: 'vera@example.com', role: 'viewer' },
    })
    await using vera = await Visitor.open(browser, inlet)
    await vera.enterByLink((await invitation.json()).url, 'Vera')
    expect(await vera.page.getByRole('link', { name: 'API keys' }).count()).toBe(0)
    for (const path of ['keys', 'keys/new']) {
      await vera.page.goto(`/in/${account}/${path}`)
      await vera.page.getByText('Only members of the account can do this').waitFor()
      expect(await vera.page.getByRole('link', { name: 'Create key' }).count()).toBe(0)
    }
    const refused = await vera.page.request.post('/v1/keys', { headers, data: { name: 'hers', scopes: ['ingest'] } })
    expect(refused.status()).toBe(403)
  })
})
