import { z } from 'zod'
import { Scope } from './api-key.ts'
import { tokenLimits } from './limits.ts'

const durationPattern = /^(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$/

/** Parses a duration such as `15m`, `1h` or `1h30m`. Returns seconds, or undefined if it is not a duration. */
export function parseDurationSeconds(text: string): number | undefined {
  const match = text === '' ? null : durationPattern.exec(text)
  if (match === null) return undefined
  const [, hours = '0', minutes = '0', seconds = '0'] = match
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)
}

const { ttlSecondsMin, ttlSecondsMax } = tokenLimits

export const ExchangeToken = z.strictObject({
  api_key: z
    .string()
    .min(1)
    .max(256)
    .meta({ examples: ['ing_live_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY'] }),
  scope: Scope.default('ingest'),
  ttl: z
    .string()
    .max(32)
    .regex(durationPattern, 'must be a duration in hours, minutes and seconds')
    .min(1, 'must be a duration in hours, minutes and seconds')
    .refine(
      (text) => {
        const seconds = parseDurationSeconds(text) ?? ttlSecondsMin
        return seconds >= ttlSecondsMin && seconds <= ttlSecondsMax
      },
      `must be from ${ttlSecondsMin} s to ${ttlSecondsMax / 3600} h`,
    )
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
