import { z } from 'zod'
import { isOrigin } from '#lib/origin.ts'
import { Id } from './id.ts'
import { keyLimits } from './limits.ts'
import { Revocation } from './revocation.ts'
import { properName } from './text.ts'
import { Timestamp } from './timestamp.ts'

export const scopes = ['ingest', 'metrics', 'query', 'admin'] as const
export const Scope = z.enum(scopes)
export type Scope = z.infer<typeof Scope>

/** An API key as the API returns it. The secret is returned once, at creation; only its SHA-256 is stored. */
export const ApiKey = z.object({
  id: Id,
  name: z.string(),
  prefix: z.string().meta({ description: 'the first characters of the key, to recognise it' }),
  scopes: z.array(Scope),
  endpoint_ids: z
    .array(Id)
    .nullable()
    .meta({ description: 'the only endpoints that the key may send to and read; null for all of the account' }),
  public: z.boolean().meta({ description: 'whether web pages may hold the key: it sends from its `origins` only' }),
  origins: z.array(z.string()).nullable().meta({ description: 'origins of the pages of a public key; null for other keys' }),
  created_at: Timestamp,
  last_used_at: Timestamp.nullable().meta({
    description:
      'the minute in which the key, or a token of it, was last accepted, or a connection with it was open; null before the first use',
  }),
  revoked_at: Timestamp.nullable(),
  access_ended_at: Timestamp.nullable().meta({
    description:
      'when its access tokens and MQTT connections were ended at once (`now`); null if they end by themselves: tokens when they expire, at most 15 minutes after `revoked_at`, and connections when they next authenticate',
  }),
  revocation: Revocation.nullable().meta({
    description:
      'how far the revocation got; null for a key that is not revoked, or was before an upgrade to a version that tells it',
  }),
})
export type ApiKey = z.infer<typeof ApiKey>

/** A key that was revoked lately, as those that verify its tokens need it. */
export type RevokedKey = {
  readonly id: string
  /** When its tokens end at the latest, ISO 8601, while its connections stay open; null if all of them ended at once. */
  readonly tokens_until: string | null
  /** Only where a node may need it: for records that are sent with a token of the key. */
  readonly name?: string | undefined
}

export const RevokeKeyQuery = z.strictObject({
  now: z.enum(['true', 'false']).default('false').meta({
    description:
      'true: the key leaked, so the access tokens that were issued for it and the MQTT connections that it opened end at once. Also for a key that is already revoked',
  }),
})

const isUnique = (list: readonly string[]) => new Set(list).size === list.length

export const KeyName = properName(128).meta({ examples: ['warehouse loader'] })

/** Fields of a new key, but those that name endpoints. */
export const keyFields = {
  name: KeyName,
  scopes: z
    .array(Scope)
    .min(1, 'must name at least one scope')
    .refine(isUnique, 'must not name a scope twice')
    .meta({ uniqueItems: true }),
  public: z.boolean().default(false).meta({
    description:
      'for a key that web pages hold: scope `ingest` only, one endpoint, and `origins`. Such a key may be in the query (`?key=`). The operator has to allow public keys',
  }),
  origins: z
    .array(
      z
        .string()
        .max(keyLimits.originBytesMax)
        .refine(
          isOrigin,
          'must be an origin as browsers send it, in lower case, without a path or the default port, such as https://app.example.com',
        )
        .meta({ examples: ['https://app.example.com'] }),
    )
    .min(1, 'must name at least one origin')
    .max(keyLimits.originsMax)
    .refine(isUnique, 'must not name an origin twice')
    .meta({ uniqueItems: true })
    .nullable()
    .default(null)
    .meta({ description: 'origins of the pages that a public key sends from', examples: [['https://app.example.com']] }),
} as const

/** The endpoints that a key is limited to, by id or by name. */
export const keyEndpoints = <T extends z.ZodType<string>>(endpoint: T) =>
  z
    .array(endpoint)
    .min(1, 'must name at least one endpoint; null for all')
    .max(keyLimits.endpointsMax)
    .refine(isUnique, 'must not name an endpoint twice')
    .meta({ uniqueItems: true })
    .nullable()
    .default(null)
    .meta({ description: 'limits the key to these endpoints of the account; not for a key with the scope `admin`' })

type KeyLimits = {
  readonly scopes: readonly Scope[]
  readonly public: boolean
  readonly origins: readonly string[] | null
}

/** Adds what the fields of a key demand of each other. `field` has its endpoints. */
export function withKeyRules<Field extends string, T extends z.ZodType<KeyLimits & Record<Field, readonly string[] | null>>>(
  schema: T,
  field: Field,
): T {
  return schema
    .refine((key) => key[field] === null || !key.scopes.includes('admin'), {
      path: [field],
      message: 'must be null for a key with the scope admin, which manages the whole account',
    })
    .refine((key) => !key.public || (key.scopes.length === 1 && key.scopes[0] === 'ingest'), {
      path: ['scopes'],
      message: 'must be only ingest for a public key, which everybody can read in the page',
    })
    .refine((key) => !key.public || key[field]?.length === 1, {
      path: [field],
      message: 'must name exactly one endpoint for a public key',
    })
    .refine((key) => key.public === (key.origins !== null), {
      path: ['origins'],
      message: 'must name the origins of a public key, and be null for other keys',
    })
}

const { name, scopes: keyScopes, public: isPublic, origins } = keyFields
export const CreateApiKey = withKeyRules(
  z.strictObject({ name, scopes: keyScopes, endpoint_ids: keyEndpoints(Id), public: isPublic, origins }),
  'endpoint_ids',
)
export type CreateApiKey = z.infer<typeof CreateApiKey>

export const CreatedApiKey = ApiKey.extend({ api_key: z.string().meta({ description: 'the key itself, returned only now' }) })
export type CreatedApiKey = z.infer<typeof CreatedApiKey>
