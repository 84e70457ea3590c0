/** A page of another origin sends with fetch and with sendBeacon, as a site that measures its visits would. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import type { Browser } from 'playwright-core'
import { build, type Rolldown } from 'vite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeInBrowser, openBrowser, Visitor } from '../support/browser.ts'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { until } from '../support/until.ts'

async function payloads(paths: readonly string[]): Promise<readonly string[]> {
  const rows = await readWithDuckDb(paths, 'payload')
  return rows.map((row) => String(row['payload'])).toSorted()
}

describeInBrowser('a page of another origin', () => {
  let browser: Browser
  let inlet: Installation
  let site: Server
  let origin: string
  beforeAll(async () => {
    const client = await clientForBrowsers()
    site = createServer(({ url }, response) => {
      if (url === '/client.js') response.setHeader('content-type', 'text/javascript').end(client)
      else response.setHeader('content-type', 'text/html').end('<title>shop</title>')
    })
    await once(site.listen(0, '127.0.0.1'), 'listening')
    origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
    inlet = await Installation.create({ environment: { INLET_PUBLIC_KEYS: 'true', INLET_CORS_ORIGINS: origin } })
    ;[browser] = await Promise.all([openBrowser(), inlet.start('start')])
  })
  afterAll(() => Promise.all([browser?.close(), site?.close(), inlet?.[Symbol.asyncDispose]()]))

  test('sends by fetch with a preflight, reads problems, and sends a beacon, with a public key', async () => {
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    await using ada = await Visitor.first(browser, inlet)
    const { key: api_key, beacon: example } = await createPublicKey(ada, id)
    const page = await browser.newPage()
    await page.goto(origin)
    const url = `${inlet.ingestUrl}/v1/ingest`
    const byFetch = (key: string) =>
      page.evaluate(
        async ([to, secret]) => {
          const headers = { 'x-api-key': secret, 'content-type': 'application/json', 'idempotency-key': 'first' }
          const response = await fetch(to, { method: 'POST', headers, body: '{"by":"fetch"}' })
          return { status: response.status, body: await response.json(), replayed: response.headers.get('idempotent-replayed') }
        },
        [url, key] as const,
      )
    await until('the key to reach the node', async () => (await byFetch(api_key)).status === 202)
    expect(await byFetch(api_key)).toMatchObject({ status: 202, replayed: 'true' })
    expect(await byFetch(`${api_key.slice(0, -1)}_`)).toMatchObject({ status: 401, body: { error: 'unauthorized' } })

    const beacon = page.waitForResponse((response) => response.url().includes('key='))
    expect(await page.evaluate(example)).toBe(true)
    expect((await beacon).status()).toBe(202)
    await ada.page.getByText('The key works').waitFor()
    const rows = () => inlet.artifacts('lake', id, 'parquet')
    await until('the files of both records', async () => (await payloads(rows())).length === 2)
    expect(await payloads(rows())).toEqual(['{"by":"fetch"}', '{"event":"left","seconds":12.5}'])
  })

  test('sends with the producer of inlet/client', async () => {
    const { id } = await inlet.endpoint({ bucket: 'produced' })
    const page = await browser.newPage()
    await page.goto(origin)
    await page.addScriptTag({ url: '/client.js' })
    const { receipt, stats } = await page.evaluate(
      async ([url, apiKey, endpoint]) => {
        const { createProducer } = (globalThis as unknown as { readonly inlet: typeof import('#client/index.ts') }).inlet
        const producer = createProducer({ url, apiKey, endpoint })
        const [receipt] = await Promise.all(Array.from({ length: 1_000 }, (_, n) => producer.send({ n, text: 'ü' })))
        await producer.close()
        return { receipt, stats: producer.stats }
      },
      [inlet.ingestUrl, inlet.apiKey, id] as const,
    )
    expect(stats).toMatchObject({ recordsStored: 1_000, requests: 1, recordsFailed: 0 })
    await inlet.committed(id, [receipt?.segment_seq ?? -1])
    const found = await payloads(inlet.artifacts('produced', id, 'parquet'))
    expect(found).toEqual(Array.from({ length: 1_000 }, (_, n) => `{"n":${n},"text":"ü"}`).toSorted())
    await page.close()
  })

  async function createPublicKey({ page, account }: Visitor, endpointId: string) {
    await page.goto(`/in/${account}/keys/new`)
    await page.getByLabel('Name').fill('shop')
    await page.getByLabel('Who holds it').selectOption('Web pages')
    await page.getByLabel('Endpoint', { exact: true }).selectOption(endpointId)
    await page.getByLabel('Origins').fill(origin)
    await page.getByRole('button', { name: 'Create key' }).click()
    const code = async (label: string) => (await page.locator('figure', { hasText: label }).locator('code').textContent()) ?? ''
    return { key: await code('API key'), beacon: await code('sendBeacon') }
  }
})

/** Bundles the client as the site of a user would. */
async function clientForBrowsers(): Promise<string> {
  const source = resolve(import.meta.dirname, '../../src')
  const [result] = (await build({
    configFile: false,
    logLevel: 'silent',
    resolve: { alias: [{ find: /^#(.*\.ts)$/, replacement: `${source}/$1` }] },
    build: { write: false, lib: { entry: resolve(source, 'client/index.ts'), formats: ['iife'], name: 'inlet' } },
  })) as readonly Rolldown.RolldownOutput[]
  const [chunk] = result?.output ?? []
  return chunk?.code ?? ''
}
