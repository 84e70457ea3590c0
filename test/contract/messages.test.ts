/** Messages about invalid input: every field of every operation, as the API describes it, with values that it does not accept. */
import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { useControl } from '../support/control.ts'
import { credentialsOf } from '../support/people.ts'
import { isThorough } from '../support/thorough.ts'

const control = useControl()

type Schema = {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}
type Operation = {
  readonly operationId: string
  readonly 'x-scope': string
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema; readonly example: unknown }> }
}
type Field = { readonly place: readonly (string | number)[]; readonly schema: Schema }
type Problem = { readonly path: string; readonly message: string }

/** Words of the validator, of the HTTP framework and of the database. */
const foreign =
  /Invalid (input|option|string|key|element|UUID|ISO)|Too (small|big)|Unrecognized|expected .*(received|to (have|be))|[<>]=|FST_|constraint|SQLITE/i

const surplus = 'surplus_field'
/** Lists whose items have payloads. */
const pageOfRecords = ['listRecords', 'listDlqRecords']
const wrongFormat = 'Not this, ü!'
const long = 'x'.repeat(5_000)
const odd = isThorough
  ? ['', ' ', wrongFormat, '\u0000', long, -1, 1.5, 1e300, true, null, [], {}, [[]], [null]]
  : ['', wrongFormat, long, 1e300, [[]]]

async function operations() {
  const { body: description } = await control().call('GET', '/openapi/openapi.json')
  const resolve = (schema: Schema): Schema =>
    schema.$ref === undefined ? schema : description.components.schemas[schema.$ref.split('/').at(-1) ?? '']
  const fieldsOf = (given: Schema, place: Field['place'] = []): Field[] => {
    const schema = resolve(given)
    const parts = Object.entries(schema.properties ?? {}).flatMap(([name, part]) => fieldsOf(part, [...place, name]))
    const entries = schema.items === undefined ? [] : fieldsOf(schema.items, [...place, 0])
    if (schema.anyOf !== undefined)
      return schema.anyOf.filter(({ type }) => type !== 'null').flatMap((choice) => fieldsOf(choice, place))
    return [{ place, schema }, ...parts, ...entries]
  }
  const all = Object.entries<Record<string, Operation>>(description.paths).flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      call: { method: method.toUpperCase(), path: template.replace(/\{\w+\}/g, newId()) },
      operation,
    })),
  )
  return { all, fieldsOf }
}

/** Puts a value in its place, in a body that is valid otherwise. */
function replaced(body: unknown, [key, ...rest]: Field['place'], value: unknown): unknown {
  if (key === undefined) return value
  if (typeof key === 'number') return [replaced(Array.isArray(body) ? body[0] : undefined, rest, value)]
  const object = typeof body === 'object' && body !== null && !Array.isArray(body) ? body : {}
  return { ...object, [key]: replaced((object as Record<string, unknown>)[key], rest, value) }
}

const tokens = async () => credentialsOf(control(), await control().newAccount())

function expectOwnWords(
  name: string,
  { status, body }: { status: number; body: { detail?: string; errors?: readonly Problem[] } },
) {
  if (status < 400) return
  for (const message of [body.detail ?? '', ...(body.errors ?? []).map((error) => error.message)]) {
    expect(message, name).not.toMatch(foreign)
    expect(message.length, name).toBeGreaterThan(0)
  }
}

const hasExample = /\(example: .+\)|one of .+|true or false/

describe('every field of every operation', () => {
  test('of a body: the message names the field, says what it must be and gives an example', { timeout: 240_000 }, async () => {
    const { all, fieldsOf } = await operations()
    const headersOf = await tokens()
    for (const { call, operation } of all) {
      const { schema, example } = operation.requestBody?.content['application/json'] ?? {}
      if (schema === undefined) continue
      const send = (body: unknown) => control().call(call.method, call.path, body, headersOf(operation['x-scope']))
      for (const { place, schema: part } of fieldsOf(schema)) {
        const name = `${operation.operationId} ${place.join('.')}`
        const isNumber = [part.type].flat().some((type) => type === 'integer' || type === 'number')
        const wrong = isNumber ? { [surplus]: 1 } : 7
        const { status, body } = await send(replaced(example, place, wrong))
        expect({ name, status }, JSON.stringify(body)).toEqual({ name, status: 422 })
        const [first] = body.errors.filter(
          ({ path }: Problem) => path === place.join('.') || path.startsWith(`${place.join('.')}.`),
        )
        expect(first?.message ?? body.errors[0].message, name).toMatch(hasExample)
        // With a value that is accepted, these run in a process of their own.
        for (const value of ['compareView', 'previewView', 'runQuery', 'suggestView'].includes(operation.operationId) ? [] : odd)
          expectOwnWords(`${name}: ${JSON.stringify(value)?.slice(0, 50)}`, await send(replaced(example, place, value)))
        if (part.type !== 'object' || part.properties === undefined) continue
        const { body: unknown } = await send(replaced(example, [...place, surplus], 1))
        const path = [...place, surplus].join('.')
        expect(unknown.errors, name).toContainEqual({
          path,
          message: expect.stringMatching(/^is not a known field: known are \w+/),
        })
      }
    }
  })

  test('of a query: the message says what the parameter must be and gives an example', { timeout: 240_000 }, async () => {
    const { all } = await operations()
    const headersOf = await tokens()
    for (const { call, operation } of all) {
      const names = (operation.parameters ?? [])
        .filter((parameter) => parameter.in === 'query')
        .map((parameter) => parameter.name)
      const send = (query: string) =>
        control().call(call.method, `${call.path}?${query}`, undefined, headersOf(operation['x-scope']))
      for (const name of names) {
        for (const value of odd.map(String)) {
          const answer = await send(new URLSearchParams({ [name]: value }).toString())
          expectOwnWords(`${operation.operationId} ${name}: ${value.slice(0, 50)}`, answer)
          for (const { message } of answer.body.errors ?? []) expect(message).toMatch(hasExample)
        }
        expectOwnWords(`${operation.operationId} ${name} twice`, await send(`${name}=a&${name}=b`))
      }
      if (names.length === 0) continue
      const { body } = await send(`${surplus}=1`)
      expect(body.errors).toEqual([{ path: surplus, message: `is not a known field: known are ${names.join(', ')}` }])
    }
  })
})

test('limit and offset of every list are plain whole numbers within their bounds: 422 otherwise', async () => {
  const { all } = await operations()
  const headersOf = await tokens()
  const notPlain = ['x', '', '1.5', '05', '-0', '0x10', '0b1', '1e1', '%2B5', '%205', '%20']
  let lists = 0
  for (const { call, operation } of all)
    for (const { name, schema } of operation.parameters ?? []) {
      if (name !== 'limit' && name !== 'offset') continue
      const [least, most] = name === 'offset' ? [0, undefined] : [1, pageOfRecords.includes(operation.operationId) ? 100 : 200]
      if (most !== undefined) expect(schema.maximum, operation.operationId).toBe(most)
      const bounds = [least - 1, ...(most === undefined ? [] : [most + 1])]
      for (const query of [...[...bounds, ...notPlain].map((value) => `${name}=${value}`), `${name}=1&${name}=2`]) {
        const answer = await control().call(call.method, `${call.path}?${query}`, undefined, headersOf(operation['x-scope']))
        const expected = { status: 422, body: { errors: [{ path: name }] } }
        expect(answer, `${operation.operationId} ${query}`).toMatchObject(expected)
      }
      lists += 1
    }
  expect(lists).toBeGreaterThan(25)
})

describe('a timestamp', () => {
  test.each([
    [
      '2026-11-20T09:15:30+01:00',
      'must have %2B instead of + in a URL: 2026-11-20T09:15:30%2B01:00 (example: 2026-11-20T08:15:30Z)',
    ],
    ['2026-11-20T09:15:30', 'must end with Z or an offset, such as +02:00 (example: 2026-11-20T08:15:30Z)'],
    ['2026-11-20', 'must be a time in ISO 8601 with Z or an offset (example: 2026-11-20T08:15:30Z)'],
  ])('in a query, not encoded: %s', async (text, message) => {
    const account = await control().newAccount()
    const { body: endpoint } = await account.post('/v1/endpoints', { region: 'loc' })
    const path = `/v1/endpoints/${endpoint.id}/commits?before=`
    expect(await account.get(path + text)).toMatchObject({ status: 422, body: { errors: [{ path: 'before', message }] } })
    expect(await account.get(path + encodeURIComponent('2026-11-20T09:15:30+01:00'))).toMatchObject({ status: 200 })
  })
})

test('a body that is missing, of another type or too large gets a message of our own', async () => {
  const headers = (await tokens())('admin')
  const send = (body: string, type: string) => control().call('POST', '/v1/endpoints', body, { ...headers, 'content-type': type })
  expect((await control().call('POST', '/v1/endpoints', undefined, headers)).body).toMatchObject({
    detail: 'the body is required: an object (example: {"region":"fra"})',
  })
  expect((await send('[]', 'application/json')).body).toMatchObject({
    detail: 'the body must be an object (example: {"region":"fra"})',
  })
  expect((await send('region=fra', 'application/x-www-form-urlencoded')).body).toMatchObject({
    detail: 'the body must be JSON: send it with the header Content-Type: application/json',
  })
  expect((await send(`"${'x'.repeat(2 ** 20)}"`, 'application/json')).body).toMatchObject({
    detail: 'the body is larger than 1 MiB (of previews and suggestions: 16 MiB)',
  })
})
