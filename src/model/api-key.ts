import { z } from 'zod'
import { Id } from './id.ts'
import { properName } from './text.ts'
import { Timestamp } from './timestamp.ts'

export const scopes = ['ingest', 'metrics', 'admin'] as const
export const Scope = z.enum(scopes)
export type Scope = z.infer<typeof Scope>

/** An API key as the API returns it. The secret is returned once, at creation; only its SHA-256 is stored. */
export const ApiKey = z.object({
  id: Id,
  name: z.string(),
  prefix: z.string().meta({ description: 'the first characters of the key, to recognise it' }),
  scopes: z.array(Scope),
  created_at: Timestamp,
  revoked_at: Timestamp.nullable(),
})
export type ApiKey = z.infer<typeof ApiKey>

export const CreateApiKey = z.strictObject({
  name: properName(128).meta({ examples: ['warehouse loader'] }),
  scopes: z
    .array(Scope)
    .min(1, 'must name at least one scope')
    .refine((list) => new Set(list).size === list.length, 'must not name a scope twice')
    .meta({ uniqueItems: true }),
})
export type CreateApiKey = z.infer<typeof CreateApiKey>

export const CreatedApiKey = ApiKey.extend({ api_key: z.string().meta({ description: 'the key itself, returned only now' }) })
export type CreatedApiKey = z.infer<typeof CreatedApiKey>

/** The authenticated caller. `key_id` names the key that the token was issued for. */
export type Principal = { readonly account_id: string; readonly key_id: string; readonly scopes: readonly Scope[] }
