/**
 * The set-up of an account in files: what `inlet apply` reads and `inlet export` writes.
 *
 * Law: fields have the names, rules and defaults of the API, because they are its schemas. Only references differ: names, not ids.
 */
import { z } from 'zod'
import { KeyName, keyEndpoints, keyFields, withKeyRules } from './api-key.ts'
import { AttachView } from './binding.ts'
import { Definition } from './definition.ts'
import { CreateDestination } from './destination.ts'
import { CreateEndpoint, EndpointName } from './endpoint.ts'
import { CreateView } from './view.ts'
import { withoutIds } from './without-ids.ts'

/** In the order in which they are created: each may refer to those before it. */
export const setupKinds = ['destinations', 'endpoints', 'views', 'bindings', 'keys'] as const
export type SetupKind = (typeof setupKinds)[number]

export const DeclaredDestination = CreateDestination
export type DeclaredDestination = z.infer<typeof DeclaredDestination>

const { name: DestinationName } = CreateDestination.shape
const { name: ViewName, description, tags } = CreateView.shape
const { region, destination_id: _destination, name: _endpoint, ...endpointSettings } = CreateEndpoint.shape
const { is_required, canary_start_ts, canary_rule } = AttachView.shape
const { scopes, public: isPublic, origins } = keyFields
const endpoint = EndpointName.meta({ description: 'name of an endpoint', examples: ['checkout events'] })

export const DeclaredEndpoint = z.strictObject({
  name: endpoint.meta({ description: 'unique in the account' }),
  region: region.meta({ description: 'cannot be changed later' }),
  destination: DestinationName.nullable().default(null).meta({ description: 'name of the destination' }),
  ...endpointSettings,
})
export type DeclaredEndpoint = z.infer<typeof DeclaredEndpoint>

export const DeclaredView = z.strictObject({
  name: ViewName.meta({ description: 'unique in the account' }),
  description,
  tags,
  definition: Definition,
})
export type DeclaredView = z.infer<typeof DeclaredView>

export const DeclaredBinding = z.strictObject({
  endpoint,
  view: ViewName.meta({ description: 'name of a view' }),
  version: z
    .int()
    .min(1)
    .optional()
    .meta({ description: 'keeps a version of the view that is published; if not set, the newest one', examples: [1] }),
  is_required,
  canary_start_ts,
  canary_rule,
})
export type DeclaredBinding = z.infer<typeof DeclaredBinding>

export const DeclaredKey = withKeyRules(
  z.strictObject({
    name: KeyName.meta({ description: 'unique in the files' }),
    scopes,
    endpoints: keyEndpoints(endpoint),
    public: isPublic,
    origins,
  }),
  'endpoints',
)
export type DeclaredKey = z.infer<typeof DeclaredKey>

export const declaredKinds = {
  destinations: DeclaredDestination,
  endpoints: DeclaredEndpoint,
  views: DeclaredView,
  bindings: DeclaredBinding,
  keys: DeclaredKey,
} as const

/** One document. Several documents and files add up. */
export const Setup = z.strictObject({
  destinations: z.array(DeclaredDestination).optional().meta({ description: 'buckets that data is delivered to' }),
  endpoints: z.array(DeclaredEndpoint).optional().meta({ description: 'addresses that data is sent to' }),
  views: z.array(DeclaredView).optional().meta({ description: 'typed columns from records' }),
  bindings: z.array(DeclaredBinding).optional().meta({ description: 'which views the records of an endpoint go through' }),
  keys: z.array(DeclaredKey).optional().meta({ description: 'API keys; their secrets are in no file' }),
})
export type Setup = z.infer<typeof Setup>

/** Text such as `${BUCKET}` is replaced by the variable of this prefix: `INLET_VAR_BUCKET`. */
export const variablePrefix = 'INLET_VAR_'

/** A reference, or `$${` for the text `${` itself. */
export const variablePattern = /\$\$\{|\$\{([^}]*)(\}?)/g
export const variableName = /^[A-Z_][A-Z0-9_]{0,63}$/

type Json = { readonly [name: string]: unknown }

/** Returns the JSON Schema of a document, for editors: draft 7, which all of them know. */
export function setupJsonSchema(): Json {
  const options = { target: 'draft-7', io: 'input', unrepresentable: 'any', metadata: withoutIds } as const
  const { $schema, ...schema } = z.toJSONSchema(Setup, options) as Json
  const kinds = Object.entries(schema['properties'] as Json).map(([kind, entries]) => [
    kind,
    kind === 'views' ? entries : withVariables(entries),
  ])
  return {
    $schema,
    title: 'Set-up of an Inlet account',
    description: 'What inlet plan and inlet apply read: docs/setup-in-git.md',
    ...schema,
    properties: Object.fromEntries(kinds),
  }
}

/** Text may have variables, so a rule about text holds only without them. */
function withVariables(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withVariables)
  if (typeof schema !== 'object' || schema === null) return schema
  const { properties, items, anyOf, ...own } = schema as Json
  const inner = {
    ...own,
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(Object.entries(properties as Json).map(([name, part]) => [name, withVariables(part)])),
        }),
    ...(items === undefined ? {} : { items: withVariables(items) }),
    ...(anyOf === undefined ? {} : { anyOf: withVariables(anyOf) }),
  }
  if (own['type'] !== 'string') return inner
  const { description, default: fallback, examples, ...rules } = own
  const described = { description, default: fallback, examples }
  return { ...JSON.parse(JSON.stringify(described)), anyOf: [rules, { type: 'string', pattern: '\\$\\{[A-Z_][A-Z0-9_]*\\}' }] }
}
