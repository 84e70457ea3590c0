/** Webhooks as GitHub and Stripe send them: key in the URL, signature in a header. A reader of the bucket can still verify them. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { describeWith, type TestEndpoint, useDeployment } from '../support/deployment.ts'
import { type Row, readWithDuckDb, readWithHyparquet } from '../support/parquet.ts'
import { realLines } from '../support/real-documents.ts'

const secret = 'a secret of the webhook'
const hmac = (text: string | Buffer) => createHmac('sha256', secret).update(text).digest('hex')

type Delivery = { readonly body: string; readonly headers: Readonly<Record<string, string>> }

/** GitHub sends compact JSON, and escapes what is not ASCII. */
function github(event: object, index: number): Delivery {
  const body = JSON.stringify(event).replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return {
    body,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'GitHub-Hookshot/044aadd',
      'x-github-delivery': `72d3162e-cc78-11e3-81ab-${String(index).padStart(12, '0')}`,
      'x-github-event': 'push',
      'x-hub-signature-256': `sha256=${hmac(body)}`,
    },
  }
}

/** Stripe sends indented JSON, and signs it with the time. */
function stripe(event: object, index: number): Delivery {
  const body = JSON.stringify(event, null, 2)
  const time = 1_795_168_530 + index
  return {
    body,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'user-agent': 'Stripe/1.0 (+https://stripe.com/docs/webhooks)',
      'stripe-signature': `t=${time},v1=${hmac(`${time}.${body}`)},v0=${'0'.repeat(64)}`,
    },
  }
}

function isGenuine(payload: Buffer, headers: Readonly<Record<string, string>>): boolean {
  const time = /t=(\d+)/.exec(headers['stripe-signature'] ?? '')?.[1]
  const signature =
    headers['x-hub-signature-256']?.slice('sha256='.length) ?? /v1=(\w+)/.exec(headers['stripe-signature'] ?? '')?.[1]
  const expected = hmac(time === undefined ? payload : Buffer.concat([Buffer.from(`${time}.`), payload]))
  return timingSafeEqual(Buffer.from(expected), Buffer.from(signature ?? ''))
}

/** Without the real ones: every kind of character that a serialiser may write in another way. */
const ownEvents = [
  {
    id: '1',
    type: 'PushEvent',
    repo: { name: 'a/b' },
    text: 'ü 😀 \u2028 </script> "\\ \t',
    n: [1.5, 1e-7, 1e21, null],
  },
  { id: 'two', type: 'WatchEvent', nested: { empty: {}, list: [] } },
]
const events: readonly object[] =
  realLines('github-events.ndjson')
    ?.slice(0, 40)
    .map((line) => JSON.parse(line)) ?? ownEvents

const view = {
  name: 'hooks',
  definition: {
    columns: [
      { name: 'id', type: 'BIGINT', path: '$.id', required: true },
      { name: 'github_event', type: 'VARCHAR', path: '$$.headers.X-GitHub-Event' },
      { name: 'signature', type: 'VARCHAR', path: '$$.headers."x-hub-signature-256"' },
      { name: 'stripe_signature', type: 'VARCHAR', path: "$$.headers['stripe-signature']" },
      { name: 'secret', type: 'VARCHAR', path: '$$.headers.authorization' },
    ],
  },
}

describeWith('objects', 'webhooks', () => {
  const deployment = useDeployment()
  const deliveries = events.flatMap((event, index) => [github(event, index), stripe(event, index)])
  const notNumbered = github({ id: 'not a number' }, 9_999)
  let endpoint: TestEndpoint
  let raw: readonly Row[]

  beforeAll(async () => {
    const kept_headers = ['X-Hub-Signature-256', 'X-GitHub-Event', 'X-GitHub-Delivery', 'Stripe-Signature']
    endpoint = await deployment().endpoint({ bucket: 'hooks', view, kept_headers })
    const seqs = new Set<number>()
    for (const { body, headers } of [...deliveries, notNumbered]) {
      // Senders make this header of https://<key>:@<host>/…
      const authorization = `Basic ${Buffer.from(`${deployment().apiKey}:`).toString('base64')}`
      const url = `${deployment().ingestUrl}/v1/ingest?endpoint=${endpoint.id}`
      const response = await fetch(url, { method: 'POST', headers: { ...headers, authorization }, body })
      const receipt = (await response.json()) as { accepted_records: number; accepted_bytes: number; segment_seq: number }
      expect(response.status, JSON.stringify(receipt)).toBe(202)
      expect(receipt).toMatchObject({ accepted_records: 1, accepted_bytes: Buffer.byteLength(body) })
      seqs.add(receipt.segment_seq)
    }
    await deployment().committed(endpoint.id, seqs)
    raw = await readWithDuckDb(await deployment().artifacts(endpoint.id, 'parquet'))
  }, 120_000)

  test('raw Parquet has the exact bytes and their signatures, for both readers', async () => {
    expect(raw.map(({ payload }) => payload)).toEqual([...deliveries, notNumbered].map(({ body }) => body))
    const other = await readWithHyparquet(await deployment().artifacts(endpoint.id, 'parquet'))
    for (const rows of [raw, other]) {
      for (const { payload, attributes } of rows) {
        expect(isGenuine(Buffer.from(String(payload)), headersIn(attributes))).toBe(true)
        expect(isGenuine(Buffer.from(`${payload} `), headersIn(attributes))).toBe(false)
      }
    }
  })

  test('no other header is kept', () => {
    const kept = new Set(raw.flatMap(({ attributes }) => Object.keys(headersIn(attributes))))
    expect([...kept].sort()).toEqual(['stripe-signature', 'x-github-delivery', 'x-github-event', 'x-hub-signature-256'])
  })

  test('a view has columns for them', async () => {
    const rows = await readWithDuckDb(await deployment().artifacts(endpoint.id, `views/${endpoint.viewName}/v1`))
    const expected = deliveries.flatMap(({ body, headers }) => {
      const { id } = JSON.parse(body)
      if (!/^\d+$/.test(String(id))) return []
      const signature = headers['x-hub-signature-256'] ?? null
      const stripe_signature = headers['stripe-signature'] ?? null
      return [{ id: String(id), github_event: headers['x-github-event'] ?? null, signature, stripe_signature, secret: null }]
    })
    expect(rows).toEqual(expected)
    expect(rows.length).toBeGreaterThan(0)
  })

  test('dead letters and looked-up records have them, too', async () => {
    const [path = ''] = await deployment().artifacts(endpoint.id, `dlq/${endpoint.viewName}/v1`)
    const dead = gunzipSync(readFileSync(path))
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const letter = dead.find(({ record }) => record === notNumbered.body)
    expect(letter.attributes.headers['x-github-delivery']).toBe(notNumbered.headers['x-github-delivery'])
    const { items } = await deployment().ok('GET', `/v1/endpoints/${endpoint.id}/records?limit=100`)
    const record = items.find((item: { record: string }) => item.record === notNumbered.body)
    expect(record.attributes.headers['x-hub-signature-256']).toBe(notNumbered.headers['x-hub-signature-256'])
  })
})

function headersIn(attributes: unknown): Readonly<Record<string, string>> {
  return JSON.parse(String(attributes)).headers
}
