/** People see what was lost with a node, which node may still accept a revoked key, and that the database is at risk. */
import pg from 'pg'
import { expect } from 'vitest'
import { startPostgres } from '../../tools/services/postgres.ts'
import { accessibilityFindings, describeInBrowser, test, Visitor } from '../support/browser.ts'
import { postgresUrl } from '../support/databases.ts'
import { Fleet, fleetRegion } from '../support/fleet.ts'
import { Installation } from '../support/installation.ts'
import { secretKey } from '../support/keyring.ts'
import { until } from '../support/until.ts'

describeInBrowser('what an operator and an owner must not miss', () => {
  test('a loss is at its endpoint until somebody confirms it', { timeout: 120_000 }, async ({ browser }) => {
    await using fleet = await Fleet.start({})
    const { control } = fleet
    // Without a destination, what is acknowledged stays on the node.
    const { id } = await control.ok('POST', '/v1/endpoints', { region: fleetRegion, name: 'shop' })
    const node = await fleet.startNode('127.0.0.2')
    await fleet.told(id, 'degraded', ['no destination is bound'])
    for (let records = 0; records < 3; records += 1) await node.ingest(id, control.apiKey)
    const held = async (): Promise<readonly { readonly records: number | null }[]> => {
      const response = await fleet.operate('GET', `/v1/nodes/${node.id}/segments`)
      return ((await response.json()) as { items: [] }).items
    }
    await until('a report of three records', async () => (await held())[0]?.records === 3, 30_000)
    await using ada = await Visitor.first(browser, control)
    const { page, account } = ada
    await page.goto(`/operate/nodes/${node.id}`)
    await page.getByRole('button', { name: 'Name node' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('fra-1')
    expect(await accessibilityFindings(page)).toEqual([])
    await page.getByRole('button', { name: 'Save name' }).click()
    await page.getByRole('heading', { name: 'Node fra-1' }).waitFor()

    await Promise.all([node.kill('ingest'), node.kill('delivery')])
    await fleet.operate('DELETE', `/v1/nodes/${node.id}?force=true`)
    await page.goto(`/in/${account}/endpoints/${id}`)
    await page.getByText('Records were lost with a node').waitFor()
    await page.getByText(/^Node fra-1 was removed/).waitFor()
    await page.getByText(/not delivered up to 3 acknowledged records, as of .*Z, and what was acknowledged later/).waitFor()
    await page.getByText(/inlet node --adopt delivers them/).waitFor()
    const [loss] = (await control.ok('GET', '/v1/losses')).items
    await page.getByText(`inlet losses confirm ${loss.id}`, { exact: true }).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await page.getByRole('button', { name: 'Confirm loss' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Confirm loss' }).click()
    await page.getByText('Loss confirmed').waitFor()
    await page.getByText('Records were lost with a node').waitFor({ state: 'detached' })
    const { items } = await control.ok('GET', '/v1/losses')
    expect(items).toMatchObject([{ state: 'confirmed', node_name: 'fra-1', records: 3 }])
    expect((await control.ok('GET', `/v1/endpoints/${id}`)).status_reasons.join()).not.toContain('acknowledged records')
  })

  test('a revoked key says which node may still accept it', { timeout: 120_000 }, async ({ browser }) => {
    await using fleet = await Fleet.start({})
    const { control } = fleet
    const { id } = await control.ok('POST', '/v1/endpoints', { region: fleetRegion })
    const node = await fleet.startNode('127.0.0.2')
    await fleet.told(id, 'degraded', ['no destination is bound'])
    await fleet.operate('PATCH', `/v1/nodes/${node.id}`, { name: 'fra-1' })
    const key = await control.ok('POST', '/v1/keys', { name: 'till', scopes: ['ingest'] })
    await using ada = await Visitor.first(browser, control)
    const { page } = ada
    const ingest = node.processes.pid('ingest') ?? 0
    process.kill(ingest, 'SIGSTOP')
    await control.ok('POST', `/v1/keys/${key.id}/revoke`)
    await page.getByRole('link', { name: 'API keys' }).click()
    const row = page.getByRole('row', { name: /till/ })
    await row.getByText(/applied on 0 of 1 node; node fra-1 \(\w{8}\) has been out of reach for \d+ s/).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    process.kill(ingest, 'SIGCONT')
    await row.waitFor({ state: 'detached' })
    await page.getByText('Show revoked keys').click()
    await row.getByText(/^revoked/).waitFor()
    expect(await row.getByText(/applied on/).count()).toBe(0)
  })

  test.skipIf(postgresUrl === undefined)(
    'a database that may lose changes, and two that take writes, are named to operators',
    { timeout: 120_000 },
    async ({ browser }) => {
      const primary = await startPostgres()
      const standby = await startPostgres({ standbyOf: primary.url })
      try {
        const [one, other] = [new URL(primary.url), new URL(standby.url)]
        const environment = {
          INLET_DATABASE_URL: `postgres://inlet@${other.host},${one.host}/postgres`,
          INLET_SECRET_KEY: secretKey,
        }
        await using control = await Installation.create({ environment })
        await control.start('control')
        await using ada = await Visitor.first(browser, control)
        const { page } = ada
        await page.goto('/operate/nodes')
        await page.getByText('Control has a warning').waitFor()
        await page.getByText(/a failover of the database may lose changes .* synchronous_standby_names is empty/).waitFor()
        expect(await accessibilityFindings(page)).toEqual([])
        // While control moves to the newer primary, it responds with 503.
        ada.tolerate(/status of 50\d/)
        const client = new pg.Client({ connectionString: standby.url })
        await client.connect()
        await client.query('select pg_promote()')
        await client.end()
        await page
          .getByText(/two servers of the database take writes: inlet database show says which/)
          .waitFor({ timeout: 60_000 })
      } finally {
        await Promise.all([standby.stop(), primary.stop()])
      }
    },
  )
})
