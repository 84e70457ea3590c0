/** The statistics and the warnings of a preview. */
import type { Value } from '#duckdb/database.ts'
import type { PreviewColumn, PreviewIssue } from '#model/preview.ts'
import { printType } from '#model/types/column-type.ts'
import type { CompiledColumn } from '#views/compiled-view.ts'
import { verdicts } from '#views/extraction.ts'
import type { DecidedSample } from './decide-samples.ts'
import type { LocatedWarning } from './definitions.ts'

const SAMPLE_VALUES_MAX = 5
const WARNINGS_MAX = 200

/** Adds the warnings about names, which no sample changes, in front of the others. */
export function withNames<T extends { readonly warnings: PreviewIssue[] }>(result: T, names: readonly LocatedWarning[]): T {
  return { ...result, warnings: [...names.map(aboutName), ...result.warnings].slice(0, WARNINGS_MAX) }
}

function aboutName({ name, code, message, path, line, column }: LocatedWarning): PreviewIssue {
  const place = line === undefined || column === undefined ? undefined : { line, column }
  return { sample_index: null, column: name, code, message: `${JSON.stringify(name)} ${message}`, path, ...(place && { place }) }
}

export function issue(code: string, message: string, column: string | null = null): PreviewIssue {
  return { sample_index: null, column, code, message }
}

/** `values` are those of the accepted samples. */
export function columnStatistics({ name, type }: CompiledColumn, values: readonly Value[]): PreviewColumn {
  const present = values.filter((value) => value !== null)
  const nullCount = values.length - present.length
  const distinct = new Map(present.map((value) => [JSON.stringify(value), value]))
  return {
    name,
    type: printType(type),
    nullCount,
    totalCount: values.length,
    nullRate: values.length === 0 ? 0 : nullCount / values.length,
    sampleValues: [...distinct.values()].slice(0, SAMPLE_VALUES_MAX),
  }
}

export function warningsOf(columns: readonly CompiledColumn[], samples: readonly DecidedSample[]): PreviewIssue[] {
  const ofColumns = columns.flatMap((column, index) => columnWarnings(column, index, samples))
  return [...ofColumns, ...filterWarnings(samples)].slice(0, WARNINGS_MAX)
}

function columnWarnings(column: CompiledColumn, index: number, samples: readonly DecidedSample[]): readonly PreviewIssue[] {
  const { name, required, castFailures } = column
  const type = printType(column.type)
  const quoted = JSON.stringify(name)
  const readable = samples.filter(isReadable)
  const found = readable.filter(({ isFilled, failedTexts }) => isFilled[index] || failedTexts[index] !== null)
  if (readable.length > 0 && found.length === 0) {
    const where = column.source.from === 'columns' ? `for column ${quoted}` : `at the path of column ${quoted}`
    return [issue('path_never_found', `no sample has a value ${where}`, name)]
  }
  if (found.length > 0 && found.every(({ failedTexts }) => failedTexts[index] !== null)) {
    return [issue('cast_always_fails', `no value of column ${quoted} is of type ${type}`, name)]
  }
  if (required || castFailures === 'dlq') return []
  return samples.flatMap(({ verdict, failedTexts }, sample_index) => {
    const text = failedTexts[index] ?? null
    if (verdict !== verdicts.accepted || text === null) return []
    const problem =
      column.source.from === 'columns'
        ? `column ${quoted} cannot be computed as ${type} from ${text}`
        : `the value ${JSON.stringify(text)} of column ${quoted} is not of type ${type}`
    const message = `${problem} and becomes NULL`
    return [{ sample_index, column: name, code: 'cast_failed', message }]
  })
}

function filterWarnings(samples: readonly DecidedSample[]): readonly PreviewIssue[] {
  const readable = samples.filter(isReadable)
  const unknown = readable.filter(({ verdict }) => verdict === verdicts.filterUnknown).length
  const dropped = readable.filter(({ verdict }) => verdict === verdicts.filteredOut).length + unknown
  if (readable.length === 0 || dropped < readable.length) return []
  const why = unknown === 0 ? '' : `; for ${unknown} of them they are unknown, because a value is NULL`
  return [issue('filter_keeps_nothing', `the filters keep none of the samples${why}`)]
}

function isReadable({ verdict }: DecidedSample): boolean {
  return verdict > verdicts.unreadable
}
