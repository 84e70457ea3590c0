import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import type { z } from 'zod'
import { useControl } from '../support/control.ts'
import { describedBy, toValidator } from '../support/described.ts'

const control = useControl()

type Operation = {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly security: readonly object[]
  readonly 'x-scope': string
  readonly requestBody?: { readonly content: Content }
  readonly responses: Record<string, { readonly description: string; readonly content?: Content }>
}
type Content = Record<
  string,
  { readonly schema: object; readonly example?: unknown; readonly examples?: Record<string, { readonly $ref: string }> }
>

// biome-ignore lint/suspicious/noExplicitAny: any part of a description
function resolveReference(description: any, reference: string): any {
  return reference
    .slice('#/'.length)
    .split('/')
    .reduce((part, name) => part[name], description)
}

async function described() {
  const { status, body } = await control().call('GET', '/openapi/openapi.json')
  expect(status).toBe(200)
  const operations = Object.entries<Record<string, Operation>>(body.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
  )
  return { body, operations }
}

/** The operations of the specification and their success status. */
const specified: Readonly<Record<string, string>> = {
  'POST /v1/token/exchange': '200',
  'POST /v1/endpoints': '201',
  'GET /v1/endpoints': '200',
  'PATCH /v1/endpoints/{id}': '200',
  'GET /v1/endpoints/{id}/commits': '200',
  'POST /v1/destinations': '201',
  'GET /v1/destinations': '200',
  'GET /v1/destinations/{id}': '200',
  'PATCH /v1/destinations/{id}': '200',
  'DELETE /v1/destinations/{id}': '204',
  'POST /v1/destinations/{id}/validate': '200',
  'POST /v1/views': '201',
  'GET /v1/views': '200',
  'GET /v1/views/{id}': '200',
  'PATCH /v1/views/{id}': '200',
  'DELETE /v1/views/{id}': '204',
  'POST /v1/views/{id}/publish': '200',
  'POST /v1/views/{id}/versions': '201',
  'POST /v1/views/{id}/archive': '200',
  'GET /v1/views/{id}/metrics': '200',
  'POST /v1/views/preview': '200',
  'GET /v1/views/{id}/dlq-files': '200',
  'POST /v1/endpoints/{endpoint_id}/views': '201',
  'GET /v1/endpoints/{endpoint_id}/views': '200',
  'DELETE /v1/endpoints/{endpoint_id}/views/{binding_id}': '204',
}

/** Credentials that operations of each scope accept. */
const credentials: Readonly<Record<string, readonly string[]>> = {
  admin: ['accessToken', 'session'],
  metrics: ['accessToken', 'session'],
  query: ['accessToken', 'session'],
  any: ['accessToken', 'session'],
  operator: ['operatorToken', 'session'],
  owner: ['session'],
  person: ['session'],
  public: [],
}

describe('the description', () => {
  test('equals the committed file: `npm run openapi` updates it', async () => {
    const { body } = await described()
    const committed = readFileSync(resolve(import.meta.dirname, '../../openapi/openapi.json'), 'utf8')
    expect(body).toEqual(JSON.parse(committed.replaceAll('http://127.0.0.1:8080', 'http://inlet.test')))
  })

  test('is valid OpenAPI 3.1 for an independent validator', async () => {
    const { body } = await described()
    expect(await new Validator().validate(body)).toEqual({ valid: true })
  })

  test('has an example of every body, valid by its schema', async () => {
    const { body, operations } = await described()
    // Every operation has the same errors.
    const validators = new Map<string, z.ZodType>()
    const validatorOf = (schema: object) => {
      const key = JSON.stringify(schema)
      const validator = validators.get(key) ?? toValidator(schema, body)
      validators.set(key, validator)
      return validator
    }
    const check = (name: string, content: Content | undefined) => {
      for (const { schema, example, examples } of Object.values(content ?? {})) {
        const given =
          examples === undefined ? [example] : Object.values(examples).map(({ $ref }) => resolveReference(body, $ref).value)
        expect(given.length, name).toBeGreaterThan(0)
        for (const value of given) {
          expect(value, name).toBeDefined()
          expect(validatorOf(schema).safeParse(value).error, `${name}: ${JSON.stringify(value)}`).toBeUndefined()
        }
      }
    }
    for (const { name, operation } of operations) {
      check(`${name} request`, operation.requestBody?.content)
      for (const [status, { content }] of Object.entries(operation.responses)) check(`${name} ${status}`, content)
    }
  })

  test('has the operations of the specification', async () => {
    const { operations } = await described()
    const success = Object.fromEntries(
      operations.map(({ name, operation }) => [name, Object.keys(operation.responses).find((status) => status.startsWith('2'))]),
    )
    expect(success).toMatchObject(specified)
  })

  test('has a unique id, a summary, the scope and the errors of each operation', async () => {
    const { operations } = await described()
    expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length)
    for (const { name, operation } of operations) {
      const { summary, tags, security, responses } = operation
      expect({ summary, tags }, name).toEqual({ summary: expect.stringMatching(/.{8}/), tags: [expect.any(String)] })
      const scope = operation['x-scope']
      expect(Object.keys(credentials), name).toContain(scope)
      expect(
        security?.map((each) => Object.keys(each)[0]),
        name,
      ).toEqual(credentials[scope])
      const statuses = Object.keys(responses)
      expect(statuses, name).toEqual(expect.arrayContaining(scope === 'public' ? ['429', '500'] : ['401', '429', '500']))
      if (['admin', 'metrics', 'query', 'operator'].includes(scope)) expect(statuses, name).toContain('403')
      if (name.includes('{')) expect(statuses, name).toContain('404')
      for (const [status, { content = {} }] of Object.entries(responses)) {
        if (Number(status) >= 400) expect(Object.keys(content), `${name} ${status}`).toEqual(['application/problem+json'])
      }
    }
  })

  test('says of an operation what is particular about it, and what it needs', async () => {
    const { body } = await described()
    const { description } = body.paths['/v1/nodes/{id}/credential'].delete
    expect(description).toMatch(/^Control refuses it at once\. .*Needs the operator token/)
  })

  test('says which rules span several fields or lie beyond a schema', async () => {
    const { body } = await described()
    const descriptionOf = (...path: readonly string[]): string =>
      resolveReference(body, `#/components/schemas/${path.join('/')}`).description
    expect(descriptionOf('SuggestRequest')).toContain('exactly one of')
    expect(descriptionOf('Definition', 'properties', 'columns')).toContain('names differ')
    expect(descriptionOf('Filter', 'properties', 'condition')).toContain('only columns of this definition')
    expect(descriptionOf('Redrive')).toContain('another published or archived version')
    expect(descriptionOf('CreateDestination', 'properties', 'bucket')).toContain('IP address')
    expect(JSON.stringify(body.paths['/v1/views/{id}/dlq-files'].get.parameters)).toContain('needs `limit`')
    expect(body.paths['/v1/views/{id}/versions'].post.requestBody.required).toBe(false)
  })

  test('has no dangling references and no unused components', async () => {
    const { body } = await described()
    const references = new Set([...JSON.stringify(body).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name))
    expect([...references].toSorted()).toEqual(Object.keys(body.components.schemas).toSorted())
    expect(body.components.schemas).toHaveProperty('CreateDestination')
    expect(Object.keys(body.components.schemas).filter((name) => name.endsWith('Input'))).toEqual(['MqttConfigInput'])
  })

  test('is served as YAML too', async () => {
    const { status, headers, body } = await control().call('GET', '/openapi/openapi.yaml')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toContain('yaml')
    expect(body).toMatch(/^openapi: 3\.1\.0/)
    expect(parse(body)).toEqual((await described()).body)
  })
})

describe('the interactive reference at /openapi/', () => {
  test('is a self-contained page that loads nothing from elsewhere', async () => {
    const { status, headers, body } = await control().call('GET', '/openapi/')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toContain('text/html')
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("script-src 'self';")
    const files = [...String(body).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file = '']) => file)
    expect(files.length).toBeGreaterThan(4)
    for (const file of files) {
      expect(file).toMatch(/^\.\/static\//)
      expect(await control().call('GET', `/openapi/${file.slice(2)}`), file).toMatchObject({ status: 200 })
    }
    expect(await control().call('GET', '/openapi')).toMatchObject({ status: 200 })
  })

  test.each([
    '/openapi/static/..%2f..%2fpackage.json',
    '/openapi/static/%2e%2e/index.js',
    '/openapi/static/none.js',
    '/openapi/other',
  ])('serves nothing else: %s', async (path) => {
    const answer = await control().call('GET', path)
    expect(answer, path).toMatchObject({ status: expect.toSatisfy((status: number) => status === 403 || status === 404) })
  })
})

describe('the check of every response in these tests', () => {
  test('detects an undescribed status, type and body', async () => {
    const { url, newAccount } = control()
    const { body: endpoint } = await (await newAccount()).post('/v1/endpoints', { region: 'loc' })
    const check = (status: number, body: unknown, type = 'application/json') =>
      describedBy(url, 'POST', '/v1/endpoints', { status, headers: new Headers({ 'content-type': type }), body })
    await check(201, endpoint)
    const { id: _, ...incomplete } = endpoint
    await expect(check(200, endpoint)).rejects.toThrow('undescribed 200')
    await expect(check(201, endpoint, 'text/plain')).rejects.toThrow('undescribed text/plain')
    await expect(check(201, incomplete)).rejects.toThrow('differs')
    for (const wrong of [
      { segment_bytes: 'x' },
      { mqtt_config: {} },
      { created_at: 'yesterday' },
      { status: 'fine' },
      { id: '1' },
    ]) {
      await expect(check(201, { ...endpoint, ...wrong }), JSON.stringify(wrong)).rejects.toThrow('differs')
    }
  })
})
