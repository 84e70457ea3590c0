/**
 * Sums that stay safe integers: a number above 2^53 could not be read back, and what a node reports must not break a query for others.
 */
import { type Expression, type RawBuilder, sql } from 'kysely'

const max = sql.lit(Number.MAX_SAFE_INTEGER)

/** An aggregate over a group of rows; null without rows. */
export function sumOf(value: Expression<number>): RawBuilder<number> {
  return sql<number>`cast(case when sum(${value}) > ${max} then ${max} else sum(${value}) end as bigint)`
}

export function addTo(value: Expression<number>, added: Expression<number>): RawBuilder<number> {
  return sql<number>`case when ${value} > ${max} - ${added} then ${max} else ${value} + ${added} end`
}

/** Never below zero: a sum that had reached the maximum has lost what was added beyond it. */
export function subtractFrom(value: Expression<number>, removed: number): RawBuilder<number> {
  return sql<number>`case when ${value} < ${sql.lit(removed)} then 0 else ${value} - ${sql.lit(removed)} end`
}
