import { z } from 'zod'
import { Scope } from './api-key.ts'
import { duration } from './duration.ts'
import { tokenLimits } from './limits.ts'

const { ttlSecondsMin, ttlSecondsMax } = tokenLimits

export const ExchangeToken = z.strictObject({
  api_key: z
    .string()
    .min(1)
    .max(256)
    .meta({ examples: ['ing_live_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY'] }),
  scope: Scope.default('ingest'),
  ttl: duration(ttlSecondsMin, ttlSecondsMax)
    .default('15m')
    .meta({ description: 'lifetime of the token, such as 15m or 1h; at most 1h' }),
})
export type ExchangeToken = z.infer<typeof ExchangeToken>

export const AccessToken = z.object({
  access_token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int().meta({ description: 'lifetime in seconds' }),
})
export type AccessToken = z.infer<typeof AccessToken>
