/** The statistics and the warnings of a preview. */
import type { Value } from '#duckdb/database.ts'
import { previewLimits } from '#model/limits.ts'
import type { PreviewColumn, PreviewIssue, PreviewItem } from '#model/preview.ts'
import { printType } from '#model/types/column-type.ts'
import type { CompiledColumn, CompiledView } from '#views/compiled-view.ts'
import { columnOf, isMissing, verdicts } from '#views/extraction.ts'
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

/** Returns what became of the elements of an array that the view expands. */
export function itemsOf(
  columns: readonly CompiledColumn[],
  rows: readonly DecidedSample[],
  errors: readonly PreviewIssue[],
): PreviewItem[] {
  const refused = new Set(errors.map(({ sample_index }) => sample_index))
  let row = 0
  const items = rows.flatMap(({ index, item, verdict, isWritten }): readonly PreviewItem[] => {
    if (item === null) return []
    const outcome = isWritten ? 'accepted' : refused.has(index) ? 'dlq' : 'dropped'
    const hasError = verdict > 0
    const errorOf = () => (isMissing(verdict) ? 'missing_required' : 'cast_failed')
    return [
      {
        ...{ sample_index: index, item, outcome, row: isWritten ? row++ : null },
        error_code: verdict === verdicts.unplaced ? 'no_partition' : hasError ? errorOf() : null,
        column: hasError ? (columns[columnOf(verdict)]?.name ?? null) : null,
      },
    ]
  })
  return items.slice(0, previewLimits.itemsListedMax)
}

export function warningsOf({ columns, expand, layout }: CompiledView, rows: readonly DecidedSample[]): PreviewIssue[] {
  const ofWindow = layout.dedupeWithinMs === undefined ? [] : [issue('window_not_applied', windowNotApplied)]
  const ofColumns = columns.flatMap((column, index) => columnWarnings(column, index, rows))
  const nothing = expand !== undefined && rows.length > 0 && rows.every(({ verdict }) => verdict === verdicts.noItem)
  const ofItems = nothing ? [issue('expand_finds_nothing', 'no sample has an element at the path of expand')] : []
  return [...ofWindow, ...cutItems(rows), ...ofItems, ...ofColumns, ...filterWarnings(rows)].slice(0, WARNINGS_MAX)
}

const windowNotApplied =
  'dedupe_within is not applied here: samples are compared with each other, and not with rows that were written before'

function cutItems(rows: readonly DecidedSample[]): readonly PreviewIssue[] {
  const count = rows.filter(({ item }) => item !== null).length
  const { itemsListedMax } = previewLimits
  if (count <= itemsListedMax) return []
  return [issue('items_cut', `only the first ${itemsListedMax} of ${count} elements are listed; rows and counts are of all`)]
}

function columnWarnings(column: CompiledColumn, index: number, samples: readonly DecidedSample[]): readonly PreviewIssue[] {
  const { name, required, castFailures } = column
  const type = printType(column.type)
  const quoted = JSON.stringify(name)
  const readable = samples.filter(isReadable)
  const found = readable.filter(({ isFilled, failedTexts }) => isFilled[index] || failedTexts[index] !== null)
  if (readable.length > 0 && found.length === 0) {
    // A field that only expressions read.
    if (name.startsWith('$$.'))
      return [issue('path_never_found', `no sample has ${name}: samples are bodies of records, without an envelope`)]
    const where = column.source.from === 'columns' ? `for column ${quoted}` : `at the path of column ${quoted}`
    return [issue('path_never_found', `no sample has a value ${where}`, name)]
  }
  if (found.length > 0 && found.every(({ failedTexts }) => failedTexts[index] !== null)) {
    return [issue('cast_always_fails', `no value of column ${quoted} is of type ${type}`, name)]
  }
  if (required || castFailures === 'dlq') return []
  return samples.flatMap(({ index: sample_index, item, isWritten, failedTexts }) => {
    const text = failedTexts[index] ?? null
    if (!isWritten || text === null) return []
    const problem =
      column.source.from === 'columns'
        ? `column ${quoted} cannot be computed as ${type} from ${text}`
        : `the value ${JSON.stringify(text)} of column ${quoted} is not of type ${type}`
    const message = `${problem}${item === null ? '' : ` in the element ${item}`} and becomes NULL`
    return [{ sample_index, column: name, code: 'cast_failed', message, ...(item !== null && { item }) }]
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

/** Whether the values of the row were read. */
function isReadable({ verdict }: DecidedSample): boolean {
  return verdict >= verdicts.filterUnknown
}
