import { z } from 'zod'
import { Id } from './id.ts'
import { lineOfText } from './text.ts'
import { Timestamp } from './timestamp.ts'

export const scopes = ['ingest', 'metrics', 'admin'] as const
export const Scope = z.enum(scopes)
export type Scope = z.infer<typeof Scope>

/** `ing_live_` and 32 base62 characters. */
export const apiKeyPattern = /^ing_live_[0-9A-Za-z]{32}$/

/** A key as it may be shown: the secret itself is shown once, at creation, and only its SHA-256 is kept. */
export const ApiKey = z.object({
  id: Id,
  name: z.string(),
  prefix: z.string().meta({ description: 'the first characters of the key, to recognise it by' }),
  scopes: z.array(Scope),
  created_at: Timestamp,
  revoked_at: Timestamp.nullable(),
})
export type ApiKey = z.infer<typeof ApiKey>

export const CreateApiKey = z.strictObject({
  name: lineOfText(128).trim().min(1),
  scopes: z
    .array(Scope)
    .min(1, 'must name at least one scope')
    .refine((list) => new Set(list).size === list.length, 'must not name a scope twice'),
})
export type CreateApiKey = z.infer<typeof CreateApiKey>

export const CreatedApiKey = ApiKey.extend({ api_key: z.string().meta({ description: 'the key itself, shown only now' }) })
export type CreatedApiKey = z.infer<typeof CreatedApiKey>

/** Who is calling. `key_id` is the key behind the token. */
export type Principal = { readonly account_id: string; readonly key_id: string; readonly scopes: readonly Scope[] }
