/**
 * Every operation of the description with input that nobody would send: never a 5xx, never an undescribed status or body (the
 * client of these tests checks that). fast-check prints the seed of a failure; INLET_TEST_SEED runs it again.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { clientOf, type TestAccount, useControl } from '../support/control.ts'

const control = useControl()

const seed = process.env['INLET_TEST_SEED']
const runs = { numRuns: 40, ...(seed === undefined ? {} : { seed: Number(seed) }) }

type Schema = { readonly $ref?: string; readonly properties?: Record<string, unknown>; readonly anyOf?: readonly Schema[] }
type Operation = {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema }> }
}

const definition = { columns: [{ name: 'a', type: 'VARCHAR', path: '$.a' }], filters: [{ condition: 'a IS NOT NULL' }] }

/** Values that are right somewhere, and values that are right nowhere. */
function values(ids: readonly string[]): fc.Arbitrary<unknown> {
  const texts = [
    ...ids,
    newId(),
    'loc',
    'events',
    'lake',
    'segments',
    'metrics',
    '15m',
    '2026-11-20T00:00:00.000Z',
    'eu-central-1',
  ]
  const odd = [
    '',
    ' ',
    'x'.repeat(5_000),
    '\u0000',
    '\ud800',
    '../..',
    "'; drop table views; --",
    '%00',
    '9'.repeat(400),
    '-0',
    '💥',
  ]
  const arn = 'arn:aws:iam::123456789012:role/ingest'
  const numbers = [0, -1, 1, 2, 1.5, 8_000_000, 2 ** 53, -(2 ** 63), 1e308]
  const shapes = [null, true, [], {}, [[]], [null], ['parquet'], ['ingest'], definition, { columns: [{}] }, { enabled: 1 }]
  return fc.oneof(fc.constantFrom<unknown>(...texts, arn, ...odd, ...numbers, ...shapes), fc.jsonValue({ maxDepth: 3 }))
}

async function furnished() {
  const account = await control().newAccount()
  const role_arn = 'arn:aws:iam::123456789012:role/ingest'
  const { body: destination } = await account.post('/v1/destinations', { name: 'lake', bucket: 'lake', region: 'eu', role_arn })
  const { body: view } = await account.post('/v1/views', { name: 'events', definition })
  await account.post(`/v1/views/${view.id}/publish`)
  const { body: draft } = await account.post(`/v1/views/${view.id}/versions`)
  const { body: endpoint } = await account.post('/v1/endpoints', { region: 'loc', destination_id: destination.id })
  const { body: binding } = await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: view.id })
  return { account, ids: [destination.id, view.id, draft.id, endpoint.id, binding.id] as string[] }
}

async function tokenOf({ api_key }: TestAccount): Promise<string> {
  return (await control().call('POST', '/v1/token/exchange', { api_key, scope: 'admin', ttl: '1h' })).body.access_token
}

describe('whatever is sent', () => {
  test('is answered as described, and never with a 5xx', async () => {
    const { account, ids } = await furnished()
    const token = await tokenOf(account)
    const { body: description } = await control().call('GET', '/openapi/openapi.json')
    const resolve = (schema: Schema): Schema =>
      schema.$ref === undefined ? schema : description.components.schemas[schema.$ref.split('/').at(-1) ?? '']
    const operations = Object.entries<Record<string, Operation>>(description.paths).flatMap(([template, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ template, method: method.toUpperCase(), operation })),
    )
    const value = values(ids)
    for (const { template, method, operation } of operations) {
      // Without its key the account could not go on.
      if (operation.operationId === 'revokeKey') continue
      const queryNames = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query').map(({ name }) => name)
      const schema = operation.requestBody?.content['application/json']?.schema
      const fields = Object.keys(schema === undefined ? {} : (resolve(schema).properties ?? {}))
      const body =
        fields.length === 0
          ? fc.constant(undefined)
          : fc.oneof({ weight: 9, arbitrary: recordOf(fields, value) }, { weight: 1, arbitrary: value })
      const path = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...ids) }, { weight: 1, arbitrary: value.map(textOf) })
      const input = fc.record({
        body,
        query: recordOf([...queryNames, 'odd'], value),
        parameters: fc.array(path, { minLength: 2, maxLength: 2 }),
      })
      await fc.assert(
        fc.asyncProperty(input, async ({ body, query, parameters }) => {
          const left = [...parameters]
          const filled = template.replace(/\{\w+\}/g, () => encodeURIComponent(left.pop()?.toWellFormed() || '-'))
          const search = new URLSearchParams(
            Object.entries(query).map(([name, item]) => [name, textOf(item)] as [string, string]),
          )
          const answer = await control().call(method, `${filled}?${search}`, body, { authorization: `Bearer ${token}` })
          expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(500)
        }),
        runs,
      )
    }
    expect(await clientOf(control().call, token).get('/v1/endpoints')).toMatchObject({ status: 200 })
  }, 120_000)
})

/** An object with any of these fields. */
function recordOf(names: readonly string[], value: fc.Arbitrary<unknown>): fc.Arbitrary<Record<string, unknown>> {
  return fc.record(Object.fromEntries(names.map((name) => [name, value])), { requiredKeys: [] })
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
