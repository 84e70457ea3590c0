import { z } from 'zod'
import { Id } from './id.ts'
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

/** Who is calling. `key_id` is the key behind the token. */
export type Principal = { readonly account_id: string; readonly key_id: string; readonly scopes: readonly Scope[] }
