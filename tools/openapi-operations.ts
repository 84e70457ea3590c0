/** The methods of the client in src/client: an operation of the description each, but those that only a session of the console may call. */
import { comment, type Description, fieldsOf, head, methods, type Operation, type Schema, typeOf } from './openapi-types.ts'

type Found = { readonly path: string; readonly method: string; readonly operation: Operation }

export function operationsOf({ paths }: Description): string {
  const found = Object.entries(paths).flatMap(([path, operations]) =>
    methods.flatMap((method): readonly Found[] => {
      const operation = operations[method]
      const isForSessions = operation?.['x-scope'] === 'person' || operation?.['x-scope'] === 'owner'
      return operation === undefined || isForSessions ? [] : [{ path, method, operation }]
    }),
  )
  return `${head}import type { CallOptions } from '../bound.ts'
import type { Listing } from '../listing.ts'
import type { Operation } from '../operation.ts'
import type { components } from './schema.ts'

export type Operations = {
${found.map(signatureOf).join('')}}

export const operations = {
${found.map(entryOf).join('')}} as const satisfies Record<keyof Operations, Operation>
`
}

function signatureOf({ path, operation }: Found): string {
  const input = inputOf(operation)
  const inputs =
    input === 'body'
      ? [`body${operation.requestBody?.required === true ? '' : '?'}: ${typeOf(bodyOf(operation))}`]
      : input === 'query'
        ? [`query?: ${fieldsOf(queryOf(operation))}`]
        : []
  const ids = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => `${name}: string`)
  const parameters = [...ids, ...inputs, 'options?: CallOptions'].join(', ')
  const items = pagingOf(operation)?.items
  const results = successesOf(operation).map((schema) => (schema === undefined ? 'undefined' : typeOf(schema)))
  const result = results.every((type) => type === 'undefined') ? 'void' : results.join(' | ')
  const returned = items === undefined ? `Promise<${result}>` : `Listing<${itemOf(operation, items)}, ${result}>`
  return `${comment(`${operation.summary}. ${operation.description}`)}readonly ${operation.operationId}: (${parameters}) => ${returned}\n`
}

function entryOf({ path, method, operation }: Found): string {
  const { operationId, 'x-scope': scope } = operation
  // Operations that any token opens, or one that reads, change nothing.
  const isRepeatable = method !== 'post' || (scope !== 'admin' && scope !== 'operator')
  const paging = pagingOf(operation)
  const entry = { method: method.toUpperCase(), path, scope, input: inputOf(operation), isRepeatable, ...(paging && { paging }) }
  return `${operationId}: ${JSON.stringify(entry)},\n`
}

function inputOf(operation: Operation): 'body' | 'query' | 'none' {
  const hasQuery = queryOf(operation).length > 0
  if (operation.requestBody === undefined) return hasQuery ? 'query' : 'none'
  if (hasQuery) throw new Error(`${operation.operationId} has a body and a query: a method of the client has one of them`)
  return 'body'
}

function queryOf({ parameters = [] }: Operation) {
  return parameters.filter((parameter) => parameter.in === 'query')
}

/** How the pages of a list follow each other; undefined if the operation is no list. */
function pagingOf(operation: Operation) {
  const page = successesOf(operation)[0]?.properties
  const items = page === undefined ? undefined : ['items', 'files'].find((name) => page[name]?.type === 'array')
  if (page === undefined || items === undefined || !operation.operationId.startsWith('list')) return undefined
  const limitMax = queryOf(operation).find(({ name }) => name === 'limit')?.schema.maximum
  const field = ['next_offset', 'next_cursor'].find((name) => page[name] !== undefined)
  const parameter = queryOf(operation).find(({ name }) => ['offset', 'before', 'cursor'].includes(name))?.name
  if ((field === undefined) !== (parameter === undefined)) throw new Error(`${operation.operationId}: unknown kind of pages`)
  // Without a cursor a list is short, or shows only as many as its caller wants to see.
  return field === undefined || parameter === undefined ? { items } : { items, cursor: { field, parameter }, limitMax }
}

function itemOf(operation: Operation, items: string): string {
  return typeOf(successesOf(operation)[0]?.properties?.[items]?.items ?? {})
}

function bodyOf({ requestBody }: Operation): Schema {
  return requestBody?.content?.['application/json']?.schema ?? {}
}

/** Returns the schemas of the successes, undefined for one without a body. */
function successesOf({ responses }: Operation): readonly (Schema | undefined)[] {
  return Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, body]) => body.content?.['application/json']?.schema)
}
