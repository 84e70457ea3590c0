/** When a canary is stopped by itself: a version that does worse on the same segments than the version beside it. */
import { z } from 'zod'
import { percentOf } from './view-metrics.ts'

const Points = z.number().min(0).max(100).nullable()

/** As a request sets it. */
export const SetCanaryRule = z.strictObject({
  min_records: z
    .int()
    .min(1)
    .max(1_000_000_000)
    .default(1_000)
    .meta({ description: 'records that both versions must have processed before it is judged', examples: [1_000] }),
  dead_letters_pct: Points.default(1).meta({
    description: 'percentage points by which its share of dead letters may be above that of the other version; null: any',
    examples: [1],
  }),
  failed_pct: Points.default(1).meta({
    description: 'the same for records of segments on which it failed as a whole',
    examples: [1],
  }),
  nulls_pct: Points.default(5).meta({
    description: 'the same for the NULLs of each column that both versions have',
    examples: [5],
  }),
  window_minutes: z
    .int()
    .min(5)
    .max(1_440)
    .nullable()
    .default(60)
    .meta({
      description:
        'it is also judged by the last so many minutes, if both versions have `min_records` in them; null: only by all since it began',
      examples: [60],
    }),
})

export const CanaryRule = z.object({
  min_records: z.int().min(1),
  dead_letters_pct: Points,
  failed_pct: Points,
  nulls_pct: Points,
  window_minutes: z.int().min(1).nullable(),
})
export type CanaryRule = z.infer<typeof CanaryRule>

/** Reads a rule that is stored. One from before there were windows has none. */
export function readCanaryRule(stored: string): CanaryRule {
  return { window_minutes: null, ...(JSON.parse(stored) as Omit<CanaryRule, 'window_minutes'>) }
}

export const defaultCanaryRule: CanaryRule = SetCanaryRule.parse({})

/** The figures of one version on one endpoint, since the canary began or in its window. */
export type VersionFigures = {
  readonly version: number
  readonly processed: number
  readonly accepted: number
  readonly dlq: number
  readonly failed: number
  readonly columns: readonly { readonly name: string; readonly values: number; readonly nulls: number }[]
}

type Shares = { readonly canary: number; readonly other: number }

/** Returns why the canary must stop; undefined if it may go on, or if there are too few records to say. */
export function judgeByRule(rule: CanaryRule, canary: VersionFigures, other: VersionFigures): string | undefined {
  if (Math.min(canary.processed, other.processed) < rule.min_records) return undefined
  const shareOf = (name: 'dlq' | 'failed'): Shares => ({
    canary: percentOf(canary[name], canary.processed),
    other: percentOf(other[name], other.processed),
  })
  const broken =
    explain(rule.dead_letters_pct, shareOf('dlq'), 'of its records became dead letters', other.version) ??
    explain(rule.failed_pct, shareOf('failed'), 'of its records are of segments on which it failed', other.version)
  if (broken !== undefined) return broken
  if (Math.min(canary.accepted, other.accepted) < rule.min_records) return undefined
  const before = new Map(other.columns.map((column) => [column.name, column]))
  for (const { name, values, nulls } of canary.columns) {
    const old = before.get(name)
    if (old === undefined) continue
    const shares = { canary: percentOf(nulls, values + nulls), other: percentOf(old.nulls, old.values + old.nulls) }
    const reason = explain(rule.nulls_pct, shares, `of its rows have NULL in column ${JSON.stringify(name)}`, other.version)
    if (reason !== undefined) return reason
  }
  return undefined
}

function explain(allowed: number | null, { canary, other }: Shares, what: string, version: number): string | undefined {
  if (allowed === null || canary - other <= allowed) return undefined
  const points = `${allowed} percentage ${allowed === 1 ? 'point' : 'points'}`
  return `${canary} % ${what}, and ${other} % with version ${version}: the rule of the canary allows ${points} more`
}
