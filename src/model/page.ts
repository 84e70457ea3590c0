import { z } from 'zod'
import { isDecimalInteger } from '#lib/decimal-integer.ts'
import { pageLimits } from './limits.ts'

/** An integer in a query: decimal digits. Coercion alone would also take an empty text, `0x10`, `1e2`, `+5` and ` 5`. */
export function inQuery<Integer extends z.ZodType>(integer: Integer) {
  return z.preprocess((text) => (typeof text === 'string' && !isDecimalInteger(text) ? Number.NaN : text), integer)
}

const limit = z.coerce.number().int().min(pageLimits.min).max(pageLimits.max)
const offset = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER)

export const PageLimit = inQuery(limit.default(pageLimits.default))

export const PageQuery = z.strictObject({ limit: PageLimit, offset: inQuery(offset.default(0)) })
/** Where a page is returned only if it is asked for. */
export const OptionalPageQuery = z.strictObject({ limit: inQuery(limit.optional()), offset: inQuery(offset.optional()) })
export type PageQuery = z.infer<typeof PageQuery>

/** The response of a list with offset pagination. */
export type Page<T> = {
  readonly items: T[]
  readonly total: number
  readonly limit: number
  readonly offset: number
  readonly next_offset: number | null
}

export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({
    items: z.array(item),
    total: z.int().min(0),
    limit: z.int(),
    offset: z.int(),
    next_offset: z.int().nullable(),
  })
}

export function toPage<T>(items: readonly T[], total: number, { limit, offset }: PageQuery): Page<T> {
  const end = offset + items.length
  return { items: [...items], total, limit, offset, next_offset: items.length > 0 && end < total ? end : null }
}
