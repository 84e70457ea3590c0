import { z } from 'zod'
import { duration } from './duration.ts'
import { Region } from './endpoint.ts'
import { Id } from './id.ts'
import { joinTokenLimits } from './limits.ts'
import { properName } from './text.ts'
import { Timestamp } from './timestamp.ts'

export const JoinTokenStatus = z.enum(['active', 'used_up', 'expired', 'revoked'])
export type JoinTokenStatus = z.infer<typeof JoinTokenStatus>

/** A join token as the API returns it. The secret is returned once, at creation; only its SHA-256 is stored. */
export const JoinToken = z.object({
  id: Id,
  name: z.string(),
  region: z.string().nullable().meta({ description: 'the region in which nodes may join with it; null for any' }),
  status: JoinTokenStatus.meta({ description: 'nodes can join only while it is `active`' }),
  uses: z.int().min(0).meta({ description: 'how many nodes joined with it' }),
  uses_max: z.int().min(1).nullable().meta({ description: 'how many nodes may join with it; null for any number' }),
  created_at: Timestamp,
  expires_at: Timestamp,
  revoked_at: Timestamp.nullable(),
})
export type JoinToken = z.infer<typeof JoinToken>

const { ttlSecondsMin, ttlSecondsMax, usesMax } = joinTokenLimits

export const CreateJoinToken = z.strictObject({
  name: properName(128).meta({ examples: ['frankfurt, rack 4'] }),
  region: Region.nullable().default(null),
  uses_max: z.int().min(1).max(usesMax).nullable().default(1).meta({ description: 'null for any number of nodes' }),
  ttl: duration(ttlSecondsMin, ttlSecondsMax)
    .default('24h')
    .meta({ description: 'lifetime of the token, such as 30m or 720h; at most 8760h' }),
})
export type CreateJoinToken = z.infer<typeof CreateJoinToken>

export const CreatedJoinToken = JoinToken.extend({
  join_token: z.string().meta({ description: 'the token itself, returned only now: `inlet node --join-token`' }),
  root_sha256: z.string().nullable().meta({
    description:
      'SHA-256 of the root certificate that the token pins: nodes then need no CA file. Null if the certificate of control has no root of its own',
  }),
})
export type CreatedJoinToken = z.infer<typeof CreatedJoinToken>
