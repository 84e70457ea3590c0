/**
 * Quotas: bounds on what an account may have and send.
 *
 * Owns: the names of quotas, their defaults, and what an operator may set. Does not own: counting (`store/accounts/quotas.ts`, ingest of each node).
 */
import { z } from 'zod'
import { dayMs } from '#lib/time-units.ts'
import { Id } from './id.ts'
import { quotaLimits, weightLimits } from './limits.ts'
import { Timestamp } from './timestamp.ts'

const limit = ({ min, max, default: usual }: { min: number; max: number; default: number }, description: string) =>
  z
    .int()
    .min(min)
    .max(max)
    .meta({ description, examples: [usual] })

/** The limit of each quota. */
export const Quotas = z.object({
  endpoints: limit(quotaLimits.endpoints, 'endpoints that are not deleted'),
  views: limit(quotaLimits.views, 'views with a version that is not archived, whatever the number of versions'),
  view_versions: limit(quotaLimits.view_versions, 'versions of all views, archived ones included'),
  api_keys: limit(quotaLimits.api_keys, 'API keys that are not revoked'),
  bytes_per_day: limit(quotaLimits.bytes_per_day, 'payload bytes accepted in a UTC day, decompressed'),
  records_per_second: limit(quotaLimits.records_per_second, 'records accepted in each region, on average'),
})
export type Quotas = z.infer<typeof Quotas>
export type QuotaName = keyof Quotas

/** Quotas that nodes enforce. */
export const NodeQuotas = Quotas.pick({ bytes_per_day: true, records_per_second: true })
export type NodeQuotas = z.infer<typeof NodeQuotas>

/** Quotas that limit what exists at the same time. */
export type CountedQuota = 'endpoints' | 'views' | 'view_versions' | 'api_keys'

export const quotaNames = Object.keys(Quotas.shape) as QuotaName[]

/** A JSON merge patch (RFC 7396): quotas that are left out stay, and null restores the default. */
export const ChangeQuotas = z.strictObject({
  endpoints: Quotas.shape.endpoints.nullable().optional(),
  views: Quotas.shape.views.nullable().optional(),
  view_versions: Quotas.shape.view_versions.nullable().optional(),
  api_keys: Quotas.shape.api_keys.nullable().optional(),
  bytes_per_day: Quotas.shape.bytes_per_day.nullable().optional(),
  records_per_second: Quotas.shape.records_per_second.nullable().optional(),
})
export type ChangeQuotas = z.infer<typeof ChangeQuotas>

/** The quotas that the operator set for an account. */
export type OwnQuotas = Partial<Quotas>

export function mergeQuotas(current: OwnQuotas, change: ChangeQuotas): OwnQuotas {
  const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined))
  return Object.fromEntries(Object.entries({ ...current, ...given }).filter(([, value]) => value !== null))
}

/** Fills in the defaults of this release. */
export function effectiveQuotas(own: OwnQuotas): Quotas {
  const { endpoints, views, view_versions, api_keys, bytes_per_day, records_per_second } = quotaLimits
  return {
    endpoints: own.endpoints ?? endpoints.default,
    views: own.views ?? views.default,
    view_versions: own.view_versions ?? view_versions.default,
    api_keys: own.api_keys ?? api_keys.default,
    bytes_per_day: own.bytes_per_day ?? bytes_per_day.default,
    records_per_second: own.records_per_second ?? records_per_second.default,
  }
}

export const Weight = z
  .int()
  .min(weightLimits.min)
  .max(weightLimits.max)
  .meta({
    description:
      'share of the account where accounts compete for a node: with weight 2 it gets twice as much as one with weight 1',
    examples: [weightLimits.default],
  })

const Use = z.object({ limit: z.int(), used: z.int() })

/** The quotas of an account with their use. */
export const QuotaUse = z.object({
  account_id: Id,
  weight: Weight,
  quotas: z.object({
    endpoints: Use,
    views: Use,
    view_versions: Use,
    api_keys: Use,
    bytes_per_day: Use.extend({ resets_at: Timestamp.meta({ description: 'when the next UTC day begins' }) }),
    records_per_second: Use.meta({ description: 'used: in all regions, as nodes last reported' }),
  }),
})
export type QuotaUse = z.infer<typeof QuotaUse>

/** Returns the UTC day of a time (epoch ms), for example `2026-11-22`. */
export function dayOf(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 10)
}

/** Returns when the UTC day of a time ends, both in epoch ms. */
export function endOfDay(epochMs: number): number {
  return (Math.floor(epochMs / dayMs) + 1) * dayMs
}
