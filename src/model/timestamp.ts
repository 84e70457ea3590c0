import { z } from 'zod'

/** ISO 8601 in UTC with milliseconds and `Z`: how the API writes a moment. */
export const Timestamp = z.iso
  .datetime({ precision: 3 })
  .meta({ description: 'ISO 8601, UTC, milliseconds', examples: ['2026-11-20T08:15:30.123Z'] })

/** What the API reads as a moment: any ISO 8601 date-time with an offset, kept as UTC with milliseconds. */
export const TimestampInput = z.iso
  .datetime({ offset: true })
  .transform((text) => new Date(text).toISOString())
  // An offset can carry the first and the last day out of what four digits can say.
  .refine((text) => /^\d{4}-/.test(text), 'must be in the years 0000 to 9999, in UTC')
