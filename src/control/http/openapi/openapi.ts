/**
 * The OpenAPI 3.1 description, generated from the schemas that validate.
 *
 * Owns: everything that operations have in common: credentials, implied error responses, names of components.
 * Law: no route describes anything twice.
 */
import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { errorTable, expressionProblems, problemLimits } from '#errors.ts'
import { Account, ChangeAccount, CreateAccount, CreatedAccount } from '#model/account.ts'
import { ApiKey } from '#model/api-key.ts'
import { AuditEvent } from '#model/audit-event.ts'
import { AttachView, Binding } from '#model/binding.ts'
import { CanaryRule, SetCanaryRule } from '#model/canary-rule.ts'
import { Commit, CommitFiles } from '#model/commit.ts'
import { Column, Definition, Filter } from '#model/definition.ts'
import { DeliveredRecord, DlqRecord } from '#model/delivered-record.ts'
import {
  BucketPolicy,
  ChangeDestination,
  CreateDestination,
  Destination,
  DestinationWithCount,
  TrustPolicy,
} from '#model/destination.ts'
import { ValidatedDestination, ValidationStep } from '#model/destination-validation.ts'
import { DlqFile } from '#model/dlq-file.ts'
import { ChangeEndpoint, ChangeMqttConfig, CreateEndpoint, Endpoint, ForcedDeletion, MqttConfig } from '#model/endpoint.ts'
import { Backfill, Job, JobDetail, Redrive } from '#model/job.ts'
import { CreatedJoinToken, CreateJoinToken, JoinToken } from '#model/join-token.ts'
import { Loss } from '#model/loss.ts'
import { ChangeNode, LogOwner, Node, NodeLog, NodeProcess, NodeRemoval, SegmentTotals } from '#model/node.ts'
import { ObjectStoreSettings } from '#model/object-store.ts'
import {
  AcceptInvitation,
  ChangePerson,
  CreatedInvitation,
  Invitation,
  Invite,
  Membership,
  OpenSession,
  Person,
  Session,
} from '#model/person.ts'
import { DefinitionWarning, PreviewColumn, PreviewIssue, PreviewItem, PreviewRequest, PreviewResult } from '#model/preview.ts'
import { QueriedTable, QueryResult, RunQuery } from '#model/query.ts'
import { ChangeQuotas, Quotas, QuotaUse } from '#model/quota.ts'
import { ReceiptOutcome } from '#model/receipt.ts'
import { NodeRegion, NodeRegions } from '#model/region.ts'
import { Revocation } from '#model/revocation.ts'
import { CreateSecret, RotateSecret, Secret } from '#model/secret.ts'
import { EndpointBucket, EndpointSeries, ViewBucket, ViewSeries } from '#model/series.ts'
import { Shadow, StartShadow } from '#model/shadow.ts'
import { SuggestedColumn, Suggestion, SuggestRequest } from '#model/suggestion.ts'
import { SendTestEvent, TestEvent } from '#model/test-event.ts'
import { AccessToken, ExchangeToken } from '#model/token.ts'
import { ChangeView, CreateView, CreateViewVersion, View, ViewDetail, ViewWithUsage } from '#model/view.ts'
import {
  ComparedColumn,
  ComparedEndpoint,
  ComparedSide,
  CompareView,
  OutcomeChange,
  RowChange,
  UnreadFiles,
  ViewComparison,
} from '#model/view-comparison.ts'
import { serveReferencePage } from '../pages/reference-page.ts'
import { mayChange, type RouteScope } from '../requests/authenticate.ts'
import { problemContentType } from '../requests/problem.ts'
import { addExamples, type DescribedOperation } from './examples.ts'
import { problemExamples } from './problems.ts'

/** Describes the token that an operation needs. */
const credentials: Readonly<Record<Exclude<RouteScope, 'node'>, string>> = {
  admin: 'Needs a token of scope `admin`.',
  metrics: 'Needs a token of scope `metrics` or `admin`.',
  query: 'Needs a token of scope `query` or `admin`.',
  any: 'Accepts a token of any scope.',
  owner: 'Needs a session of the console, of an owner of the account.',
  person: 'Needs a session of the console.',
  operator:
    'Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do.',
  public: 'Needs no token.',
}

/** Why a caller with valid credentials is refused. */
const forbidden: Readonly<Record<Exclude<RouteScope, 'public'>, string>> = {
  admin: 'the access token lacks the scope admin, or the role of the person does',
  metrics: 'the access token lacks the scope metrics',
  query: 'the access token lacks the scope query',
  any: 'the person does not belong to the account',
  owner: 'the person is no owner of the account',
  person: 'the call comes from another page',
  operator: 'the token is a credential of an account, or the person is no operator',
}

const errorCodes = Object.keys(errorTable) as (keyof typeof errorTable)[]

const FieldError = z.object({
  path: z.string().meta({ description: 'dotted, empty for the whole body' }),
  message: z.string(),
  line: z.int().optional().meta({ description: 'line in a statement, or in a definition that was sent as text, from 1' }),
  column: z.int().optional().meta({ description: 'column in the line, from 1' }),
  code: z.enum(expressionProblems).optional().meta({ description: 'what is wrong with an expression of a view' }),
  excerpt: z
    .string()
    .optional()
    .meta({
      description: 'the line of an expression with the problem, and a caret below the place',
      examples: ['lower(nmae)\n      ^'],
    }),
})

const Problem = z.object({
  type: z.string().meta({ description: '`{base_url}/errors/<error>`, a page that explains the error' }),
  title: z.string(),
  status: z.int(),
  error: z.enum(errorCodes),
  detail: z.string(),
  retry: z.literal(true).optional().meta({ description: 'the same request may succeed later' }),
  quota: z.string().optional().meta({ description: 'for quota_exceeded: the name of the quota' }),
  errors: z
    .array(FieldError)
    .max(problemLimits.errorsMax)
    .optional()
    .meta({ description: 'for validation_error: every problem found. If there are more, `detail` says how many' }),
})

/** An error response that a route declares itself, because it does not follow from the route's shape. */
export function problem(description: string) {
  return { description, content: { [problemContentType]: { schema: Problem } } } as const
}

/** By the file that defines them. */
const components: readonly Readonly<Record<string, z.ZodType>>[] = [
  { Account, ChangeAccount, CreateAccount, CreatedAccount },
  { ApiKey, Revocation },
  { AuditEvent },
  { AttachView, Binding },
  { Commit, CommitFiles },
  { Column, Definition, Filter },
  { DeliveredRecord, DlqRecord },
  { BucketPolicy, ChangeDestination, CreateDestination, Destination, DestinationWithCount, TrustPolicy },
  { ValidatedDestination, ValidationStep },
  { CanaryRule, SetCanaryRule },
  { DlqFile },
  { ChangeEndpoint, ChangeMqttConfig, CreateEndpoint, Endpoint, ForcedDeletion, MqttConfig },
  { Backfill, Job, JobDetail, Redrive },
  { CreatedJoinToken, CreateJoinToken, JoinToken },
  { ChangeNode, LogOwner, Node, NodeLog, NodeProcess, NodeRemoval, SegmentTotals },
  { Loss },
  { ObjectStoreSettings },
  { AcceptInvitation, ChangePerson, CreatedInvitation, Invitation, Invite, Membership, OpenSession, Person, Session },
  { DefinitionWarning, PreviewColumn, PreviewIssue, PreviewItem, PreviewRequest, PreviewResult },
  { QueriedTable, QueryResult, RunQuery },
  { ChangeQuotas, Quotas, QuotaUse },
  { NodeRegion, NodeRegions },
  { CreateSecret, RotateSecret, Secret },
  { EndpointBucket, EndpointSeries, ViewBucket, ViewSeries },
  { Shadow, StartShadow },
  { SuggestedColumn, Suggestion, SuggestRequest },
  { ReceiptOutcome },
  { SendTestEvent, TestEvent },
  { AccessToken, ExchangeToken },
  { ChangeView, CreateView, CreateViewVersion, View, ViewDetail, ViewWithUsage },
  { ComparedColumn, ComparedEndpoint, ComparedSide, CompareView, OutcomeChange, RowChange, UnreadFiles, ViewComparison },
  { FieldError, Problem },
]

const registry = z.globalRegistry
for (const [id, schema] of components.flatMap(Object.entries<z.ZodType>)) registry.add(schema, { ...registry.get(schema), id })

/** Response of every GET to a client that has the current version already (unchanged.ts). */
const unchanged = {
  304: z.undefined().describe('unchanged since the response whose `ETag` the request names in `If-None-Match`; without a body'),
}

type Described = {
  readonly method?: string | readonly string[] | undefined
  readonly config?: { readonly scope?: RouteScope | undefined } | undefined
  readonly schema?: FastifySchema | undefined
}

/** The error responses that follow from a route's shape. */
function impliedProblems({ method, config, schema }: Described): Readonly<Record<number, ReturnType<typeof problem>>> {
  const scope = config?.scope
  const isChange = mayChange([method].flat()[0] ?? '', scope ?? 'admin')
  // A change without a body refuses one with fields.
  const validated = schema?.body !== undefined || schema?.querystring !== undefined || [method].flat()[0] !== 'GET'
  return {
    ...(scope === 'public' ? {} : { 401: problem('the access token or the session is missing or not valid') }),
    ...(scope === 'public'
      ? {}
      : { 403: problem(`${forbidden[scope ?? 'admin']}${isChange ? ', or the account is suspended' : ''}`) }),
    ...(schema?.params === undefined ? {} : { 404: problem('the account has no such resource') }),
    406: problem('the client does not accept application/json'),
    ...(schema?.body === undefined
      ? {}
      : { 413: problem('the body is too large'), 415: problem('the body is not application/json') }),
    ...(validated ? { 422: problem('the request is not valid; `errors` lists every problem') } : {}),
    429: problem('too many requests, or a quota is exceeded; retry after `Retry-After` seconds'),
    500: problem('internal error'),
    503: problem('the service is not available; retry after `Retry-After` seconds'),
  }
}

const description = `The management API of Inlet: endpoints receive events, destinations store them, views give them types.

Exchange an API key for an access token, then send it with every call: \`Authorization: Bearer <access token>\`. The field \`x-scope\` of an
operation is the scope that its token needs: \`admin\`, \`metrics\` or \`query\` (\`admin\` works too), or \`any\`. Operations with \`operator\`
need the operator token of the installation instead.

A GET has an \`ETag\`. Name it in \`If-None-Match\` to get 304 without a body while nothing changed.

Errors have the format of RFC 7807, and \`type\` is the address of a page that explains the error. If an error has \`retry\`, send the same request again, after \`Retry-After\` seconds if that header is present.`

type OpenApiObject = ReturnType<typeof jsonSchemaTransformObject> & {
  readonly paths?: unknown
  readonly components?: { readonly schemas?: unknown }
}

export async function describe(app: FastifyInstance, baseUrl: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Inlet',
        version: '1.0.0',
        description,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: baseUrl }],
      components: {
        securitySchemes: {
          accessToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'from POST /v1/token/exchange' },
          session: {
            type: 'apiKey',
            in: 'cookie',
            name: 'inlet.session_token',
            description: 'of somebody who signed in to the console; calls also need the header `inlet-account`',
          },
          operatorToken: { type: 'http', scheme: 'bearer', description: 'the secret of the operator of this installation' },
        },
      },
    },
    transform: (input) => {
      const { schema, route } = input
      const scope = (route as RouteOptions).config?.scope
      if (schema?.operationId === undefined) return jsonSchemaTransform({ ...input, schema: { ...schema, hide: true } })
      const described = {
        ...schema,
        response: {
          ...(route.method === 'GET' ? unchanged : {}),
          ...impliedProblems(route as RouteOptions),
          ...(schema.response as object),
        },
        description: [schema.description, credentials[scope ?? 'admin']].flatMap((text) => text ?? []).join(' '),
        security: securityOf(scope),
        'x-scope': scope,
        ...(schema.body instanceof z.ZodOptional ? { [optionalBody]: true } : {}),
      }
      return jsonSchemaTransform({ ...input, schema: described })
    },
    transformObject: (input) => withExamples(withOptionalBodies(withoutUnused(jsonSchemaTransformObject(input))), baseUrl),
  })
  await serveReferencePage(app)
  // Anyone may ask for it, so it is serialized once.
  let json: string | undefined
  app.get('/openapi/openapi.json', { config: { scope: 'public' } }, async (_request, reply) => {
    json ??= JSON.stringify(app.swagger())
    return reply.type('application/json; charset=utf-8').send(json)
  })
  app.get('/openapi/openapi.yaml', { config: { scope: 'public' } }, async (_request, reply) => {
    reply.type('application/yaml')
    return app.swagger({ yaml: true })
  })
}

function securityOf(scope: RouteScope | undefined): Record<string, string[]>[] {
  if (scope === 'public') return []
  if (scope === 'owner' || scope === 'person') return [{ session: [] }]
  return [scope === 'operator' ? { operatorToken: [] } : { accessToken: [] }, { session: [] }]
}

/** Fastify's plugin calls every body required. */
const optionalBody = 'x-optional-body'

function withOptionalBodies(description: OpenApiObject): OpenApiObject {
  const paths = structuredClone(description.paths ?? {}) as Record<string, Record<string, Record<string, unknown>>>
  for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    if (operation[optionalBody] === undefined) continue
    delete operation[optionalBody]
    operation['requestBody'] = { ...(operation['requestBody'] as object), required: false }
  }
  return { ...description, paths }
}

function withExamples(description: OpenApiObject, baseUrl: string): OpenApiObject {
  const paths = (description.paths ?? {}) as Record<string, Record<string, DescribedOperation>>
  for (const operations of Object.values(paths)) {
    for (const [method, operation] of Object.entries(operations))
      addExamples(operation, mayChange(method.toUpperCase(), operation['x-scope']))
  }
  return { ...description, components: { ...description.components, examples: problemExamples(baseUrl) } } as OpenApiObject
}

/**
 * Every schema exists both as `Name` (in responses) and as `NameInput` (in requests). Drops unused schemas, and the suffix if there
 * is only one of the two or both are the same.
 */
function withoutUnused(description: OpenApiObject): OpenApiObject {
  const generated = Object.entries((description.components?.schemas ?? {}) as Record<string, unknown>)
  const schemas = new Map(generated.map(([name, schema]) => [name, JSON.stringify(schema)]))
  let text = JSON.stringify(description.paths)
  for (;;) {
    const all = [text, ...schemas.values()].join()
    const unused = [...schemas.keys()].filter((name) => !all.includes(`"${reference(name)}"`))
    if (unused.length === 0) break
    for (const name of unused) schemas.delete(name)
  }
  const withoutSuffix = (name: string) => schemas.get(name)?.replace(/Input"/g, '"')
  for (const name of [...schemas.keys()].filter((name) => name.endsWith('Input'))) {
    const short = name.slice(0, -'Input'.length)
    if (schemas.has(short) && withoutSuffix(short) !== withoutSuffix(name)) continue
    const renamed = (json: string) => json.replaceAll(`"${reference(name)}"`, `"${reference(short)}"`)
    schemas.set(short, schemas.get(short) ?? schemas.get(name) ?? '')
    schemas.delete(name)
    text = renamed(text)
    for (const [key, json] of schemas) schemas.set(key, renamed(json))
  }
  const named = [...schemas].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, json]) => [name, JSON.parse(json)])
  const components = { ...description.components, schemas: Object.fromEntries(named) }
  return { ...description, components, paths: JSON.parse(text) } as OpenApiObject
}

function reference(name: string): string {
  return `#/components/schemas/${name}`
}
