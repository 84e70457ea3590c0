/**
 * Sends valid, almost valid and random input to every operation of the API: never a 5xx, never an undescribed status or body (the
 * client of these tests checks that). fast-check prints the seed of a failure; INLET_TEST_SEED repeats it.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { clientOf, operatorToken, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { credentialsOf, newLink, newPerson } from '../support/people.ts'
import { aCommit, TestNode } from '../support/test-node.ts'
import { runs } from '../support/thorough.ts'

const control = useControl()

const seed = process.env['INLET_TEST_SEED']
const options = { numRuns: runs(1, 50), ...(seed === undefined ? {} : { seed: Number(seed) }) }

/** Operations that call a node. None runs here, so that a valid input is answered with 503. */
const needNode = new Set(['sendTestEvent'])

type Schema = { readonly $ref?: string; readonly properties?: Record<string, unknown>; readonly anyOf?: readonly Schema[] }
type Operation = {
  readonly operationId: string
  readonly 'x-scope': string
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema; readonly example: unknown }> }
}
type Described = { readonly template: string; readonly method: string; readonly operation: Operation }

const definition = { columns: [{ name: 'a', type: 'VARCHAR', path: '$.a' }], filters: [{ condition: 'a IS NOT NULL' }] }

/** Values that are valid in some field, and values that are never valid. */
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
  const made = async (path: string, body?: object): Promise<string> => (await account.post(path, body)).body.id
  const aDestination = (name: string) => made('/v1/destinations', { name, bucket: 'lake', region: 'eu', role_arn })
  const published = async (name: string) => {
    const id = await made('/v1/views', { name, definition })
    await account.post(`/v1/views/${id}/publish`)
    return id
  }
  const [destination, spare] = [await aDestination('used'), await aDestination('spare')]
  const [view, unattached] = [await published('events'), await published('others')]
  const second = await made(`/v1/views/${view}/versions`)
  await account.post(`/v1/views/${second}/publish`)
  const draft = await made(`/v1/views/${view}/versions`)
  const endpoint = await made('/v1/endpoints', { region: 'loc', destination_id: destination })
  const binding = await made(`/v1/endpoints/${endpoint}/views`, { view_id: view })
  const shadow = await made(`/v1/endpoints/${endpoint}/shadows`, { view_id: second })
  const key = await made('/v1/keys', { name: 'spare', scopes: ['ingest'] })
  const secret = await made('/v1/secrets', { name: 'spare' })
  const { body: token } = await clientOf(control().call, operatorToken).post('/v1/join-tokens', { name: 'spare' })
  const node = await TestNode.register(control(), 'loc')
  const commit = aCommit(node.id, endpoint, 0, { sealed_at: '2026-11-20T00:00:00.000Z' })
  await node.call('POST', 'commits', { commits: [commit] })
  // It delivered nothing, so that its records can be read without a bucket.
  const quiet = await made('/v1/endpoints', { region: 'loc', destination_id: destination })
  await account.post(`/v1/endpoints/${quiet}/views`, { view_id: unattached })
  const job = await made(`/v1/views/${view}/backfill`, { endpoint_id: endpoint })
  const lost = await TestNode.register(control(), 'loc')
  await lost.heartbeat({}, { lag: [aLag(endpoint)] })
  await clientOf(control().call, operatorToken).delete(`/v1/nodes/${lost.id}?force=true`)
  const [loss] = (await account.get('/v1/losses')).body.items
  const { account_id } = account
  const [owner, guest] = [
    await newPerson(control(), { account_id, role: 'owner' }),
    await newPerson(control(), { account_id, role: 'member' }),
  ]
  const { body: invitation } = await owner.send('POST', '/v1/invitations', { role: 'viewer' })
  const elsewhere = await control().newAccount()
  const link = await newLink(control(), { account_id: elsewhere.account_id, role: 'viewer' })
  const { api_key } = account
  return {
    credentials: await credentialsOf(control(), account),
    ids: [destination, spare, view, unattached, second, draft, endpoint, binding, key, job, secret],
    /** Existing ids by field, and by operation if a path parameter depends on it. */
    fitting: {
      destination_id: destination,
      view_id: unattached,
      endpoint_id: endpoint,
      endpoint_ids: [endpoint],
      binding_id: binding,
      shadow_id: shadow,
      commit_id: commit.id,
      receipt_id: `${node.id}-0`,
      api_key,
      link,
      sql: 'SELECT 1 AS one',
    },
    byOperation: {
      confirmInstallationLoss: [loss.id],
      backfillView: [second],
      redriveView: [second],
      changeView: [draft],
      archiveView: [view, draft],
      compareView: [unattached, view],
      listRecords: [quiet, endpoint],
    } as Record<string, string[]>,
    byFolder: {
      accounts: [account.account_id],
      destinations: [spare],
      views: [draft, view],
      endpoints: [endpoint],
      keys: [key],
      secrets: [secret],
      jobs: [job],
      losses: [loss.id],
      people: [guest.person_id],
      invitations: [invitation.id],
      nodes: [node.id],
      'join-tokens': [token.id],
    } as Record<string, string[]>,
  }
}

async function sessionsOf(headers: Record<string, string>): Promise<string[]> {
  const { body } = await control().call('GET', '/v1/sessions', undefined, headers)
  return body.items.map(({ id }: { readonly id: string }) => id)
}

async function operations(): Promise<{ readonly all: readonly Described[]; readonly fieldsOf: (schema: Schema) => string[] }> {
  const { body: description } = await control().call('GET', '/openapi/openapi.json')
  const resolve = (schema: Schema): Schema =>
    schema.$ref === undefined ? schema : description.components.schemas[schema.$ref.split('/').at(-1) ?? '']
  const all = Object.entries<Record<string, Operation>>(description.paths).flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ template, method: method.toUpperCase(), operation })),
  )
  return { all, fieldsOf: (schema) => Object.keys(resolve(schema).properties ?? {}) }
}

/** Replaces ids by existing ones. */
function fitted<T>(example: T, fitting: Readonly<Record<string, unknown>>): T {
  if (typeof example !== 'object' || example === null) return example
  return { ...example, ...Object.fromEntries(Object.entries(fitting).filter(([name]) => name in example)) }
}

/** The example of the API description, unchanged or with some values replaced. */
function almost(example: unknown, value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const places = placesIn(example)
  const changes = fc.array(fc.tuple(fc.constantFrom(...places), value), { maxLength: 3 })
  return changes.map((list) => list.reduce((body, [place, item]) => replaced(body, place, item), example))
}

function placesIn(value: unknown): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [[]]
  return [[], ...Object.entries(value).flatMap(([key, part]) => placesIn(part).map((place) => [key, ...place]))]
}

function replaced(value: unknown, [key, ...rest]: readonly string[], item: unknown): unknown {
  if (key === undefined) return item
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((part, index) => (String(index) === key ? replaced(part, rest, item) : part))
  return { ...value, [key]: replaced((value as Record<string, unknown>)[key], rest, item) }
}

describe('any input', () => {
  test('gets a described response, and never a 5xx', { timeout: 180_000 }, async () => {
    const { all, fieldsOf } = await operations()
    const statuses = new Map<string, Set<number>>()
    const toRead = await furnished()
    for (const { template, method, operation } of all) {
      // Operations that may delete resources get their own.
      const { credentials, ids, fitting, byFolder, byOperation } = method === 'GET' ? toRead : await furnished()
      const headers = credentials(operation['x-scope'])
      if (operation.operationId === 'endSession') byFolder['sessions'] = await sessionsOf(headers)
      const value = values(ids)
      const queryNames = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query').map(({ name }) => name)
      const { schema, example } = operation.requestBody?.content['application/json'] ?? {}
      const body =
        schema === undefined
          ? fc.constant(undefined)
          : fc.oneof(
              { weight: 5, arbitrary: almost(fitted(example, fitting), value) },
              { weight: 4, arbitrary: recordOf(fieldsOf(schema), value) },
              { weight: 1, arbitrary: value },
            )
      const named = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
      const right = named.map((name): readonly string[] =>
        name === 'id'
          ? (byOperation[operation.operationId] ?? byFolder[template.split('/')[2] ?? ''] ?? ids)
          : [fitted({ [name]: '' }, fitting)[name] ?? ''],
      )
      const wrong = named.map(() => fc.oneof(fc.constantFrom(...ids), value.map(textOf)))
      const parameters = fc.oneof(
        { weight: 2, arbitrary: fc.tuple(...right.map((fits) => fc.constantFrom(...fits))) },
        { weight: 1, arbitrary: fc.tuple(...wrong) },
      )
      // Starts with a fully valid input, independent of the seed.
      const first = { body: fitted(example, fitting), query: {}, parameters: right.map(([fits = '']) => fits) }
      const query = fc.oneof(fc.constant({}), recordOf([...queryNames, 'odd'], value))
      const input = fc.record({ body, query, parameters })
      const seen = new Set<number>()
      statuses.set(operation.operationId, seen)
      await fc.assert(
        fc.asyncProperty(input, async ({ body, query, parameters }) => {
          const left = [...parameters]
          const filled = template.replace(/\{\w+\}/g, () => encodeURIComponent(left.shift()?.toWellFormed() || '-'))
          const search = new URLSearchParams(
            Object.entries(query).map(([name, item]) => [name, textOf(item)] as [string, string]),
          )
          const answer = await control().call(method, `${filled}?${search}`, body, headers)
          if (answer.status === 503 && needNode.has(operation.operationId)) expect(answer.body.error).toBe('unavailable')
          else expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(500)
          seen.add(answer.status)
        }),
        { ...options, examples: [[first]] },
      )
    }
    // Some inputs must be valid, or the test finds little.
    const neverRight = [...statuses].filter(
      ([operationId, seen]) => ![200, 201, 202, 204, ...(needNode.has(operationId) ? [503] : [])].some((each) => seen.has(each)),
    )
    expect(neverRight.map(([operationId]) => operationId)).toEqual([])
  })
})

/** Generates an object with any of these fields. */
function recordOf(names: readonly string[], value: fc.Arbitrary<unknown>): fc.Arbitrary<Record<string, unknown>> {
  return fc.record(Object.fromEntries(names.map((name) => [name, value])), { requiredKeys: [] })
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
