/**
 * Tries a definition on samples and reports the result.
 *
 * Owns: the result as the API returns it. Does not own: how samples are decided (decide-samples.ts), how many previews run at once
 * (preview-workers.ts).
 */
import { StatementTimeout } from '#duckdb/database.ts'
import { quoteIdentifier } from '#duckdb/quote.ts'
import type { Clock } from '#lib/clock.ts'
import type { DefinedPreview, PreviewIssue, PreviewResult, TriedView } from '#model/preview.ts'
import { compileView } from '#views/compile.ts'
import type { CompiledView } from '#views/compiled-view.ts'
import { extractionSql, verdicts } from '#views/extraction.ts'
import { decideSamples, ResultTooLarge } from './decide-samples.ts'
import { failedPreview, timeoutIssue, toMicroseconds } from './failed-preview.ts'
import { formatSql } from './format-sql.ts'
import type { PreviewSecrets } from './preview-protocol.ts'
import { columnStatistics, issue, itemsOf, warningsOf } from './preview-report.ts'

export type PreviewOptions = {
  readonly clock: Clock
  readonly timeoutMs: number
  /** Secrets that the definition may name; none if not set. */
  readonly secrets?: PreviewSecrets | undefined
}

const noSecrets: PreviewSecrets = { values: {}, areStandIns: false }

/** Throws AppError validation_error for a definition that does not compile. Later failures are in `errors`. */
export async function previewView({ definition, samples }: DefinedPreview, options: PreviewOptions): Promise<PreviewResult> {
  const { clock, timeoutMs, secrets = noSecrets } = options
  const startedAt = clock.monotonic()
  const elapsedMs = () => clock.monotonic() - startedAt
  const view = await compileView(definition, { secrets: Object.keys(secrets.values), isNew: true })
  const compiledSql = formatSql(acceptedRowsSql(view))
  const tried = await tryView(view, samples, { clock, timeoutMs: timeoutMs - elapsedMs(), secrets }, timeoutMs)
  const warnings = secrets.areStandIns ? [...view.secrets.map(standInWarning), ...tried.warnings] : tried.warnings
  return { ...tried, warnings, compiledSql, executionTimeMs: toMicroseconds(elapsedMs()) }
}

/** Applies the view to the samples. `limitMs` is the time limit that an error names. */
export async function tryView(
  view: CompiledView,
  samples: readonly string[],
  { clock, timeoutMs, secrets = noSecrets }: PreviewOptions,
  limitMs: number,
): Promise<TriedView> {
  const endsAt = clock.monotonic() + timeoutMs
  const statement = () => ({ timeoutMs: Math.max(1, endsAt - clock.monotonic()) })
  try {
    const origin = { envelope: { protocol: 'http' }, receivedAtMs: clock.now() }
    const { decided, errors } = await decideSamples(view, samples, { statement, originOf: () => origin, secrets: secrets.values })
    const accepted = decided.filter(({ isWritten }) => isWritten)
    const acceptedSamples = new Set(accepted.map(({ index }) => index)).size
    const duplicates = decided.filter(({ isDuplicate }) => isDuplicate).length
    const dropped = samples.length - acceptedSamples - errors.length
    const { columns } = view
    const written = [...columns.entries()].filter(([, { hidden }]) => !hidden)
    const valuesOf = (index: number) => accepted.map(({ values }) => values[index] ?? null)
    return {
      success: errors.length === 0,
      rows: accepted.map(({ values }) => Object.fromEntries(written.map(([index, { name }]) => [name, values[index] ?? null]))),
      columns: written.map(([index, column]) => columnStatistics(column, valuesOf(index))),
      rowCount: accepted.length,
      ...(view.expand && { items: itemsOf(columns, decided, errors) }),
      counts: { processed: samples.length, accepted: acceptedSamples, dropped, dlq: errors.length, failed: 0, duplicates },
      warnings: warningsOf(view, decided),
      errors: [...errors],
    }
  } catch (error) {
    return failedPreview(toIssue(error, limitMs), samples.length)
  }
}

function standInWarning(name: string): PreviewIssue {
  const message = `hashes here are not those of delivery: ${JSON.stringify(name)} stands for itself, because only a caller with the scope admin may hash with it`
  return issue('stand_in_secret', message)
}

/** Returns the statement for the accepted rows, for display. */
function acceptedRowsSql(view: CompiledView): string {
  const values = extractionSql([view], { guarded: true, records: 'records' }).values[0] ?? []
  const named = view.columns.flatMap(({ name, hidden }, index) =>
    hidden ? [] : [`${values[index]} AS ${quoteIdentifier(name)}`],
  )
  return `SELECT ${named.join(', ')} FROM (${view.sql}) WHERE verdict_0 = ${verdicts.accepted}`
}

function toIssue(error: unknown, limitMs: number): PreviewIssue {
  if (error instanceof StatementTimeout) return timeoutIssue(limitMs)
  if (error instanceof ResultTooLarge) return issue('result_too_large', error.message)
  // After the first line DuckDB quotes the statement.
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return issue('view_failed', line)
}
