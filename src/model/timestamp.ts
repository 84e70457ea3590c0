import { z } from 'zod'

/** A timestamp as the API writes it: ISO 8601 in UTC with milliseconds and `Z`. */
export const Timestamp = z.iso
  .datetime({ precision: 3 })
  .meta({ description: 'ISO 8601, UTC, milliseconds', examples: ['2026-11-20T08:15:30.123Z'] })

/** A timestamp as the API reads it: any ISO 8601 date-time with an offset, converted to UTC with milliseconds. */
export const TimestampInput = z.iso
  .datetime({ offset: true, error: ({ input }) => (typeof input === 'string' ? explainTimestamp(input) : undefined) })
  .meta({ examples: ['2026-11-20T08:15:30Z'] })
  .transform((text) => new Date(text).toISOString())
  // Converting to UTC can move a time out of the four-digit years.
  .refine((text) => /^\d{4}-/.test(text), 'must be in the years 0000 to 9999 in UTC')

/** Recognizes common mistakes. Returns undefined for a text that is no timestamp at all. */
function explainTimestamp(text: string): string | undefined {
  const [, time, offset] = /^(\d{4}-\d\d-\d\dT[\d:.]+)(?: (\d\d:?\d\d))?$/.exec(text) ?? []
  if (time === undefined) return undefined
  // Form decoding turns a plus sign into a space.
  if (offset !== undefined) return `must have %2B instead of + in a URL: ${time}%2B${offset}`
  return 'must end with Z or an offset, such as +02:00'
}
