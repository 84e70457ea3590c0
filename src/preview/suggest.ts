/**
 * Suggests a definition for samples: a column for every path with values, in the narrowest type that accepts all of them.
 *
 * Owns: the columns, their types and names. Does not own: profiling the samples (records/sample-profile.ts).
 * Law: a suggestion compiles, and no sample that DuckDB reads as JSON fails in it: the view is tried first, and columns with errors or
 * warnings become JSON. Names depend on the set of paths, not on the order of the samples.
 */
import type { Clock } from '#lib/clock.ts'
import { nameWarnings } from '#model/column-names.ts'
import { type Column, withListForm } from '#model/definition.ts'
import { definitionLimits } from '#model/limits.ts'
import type { PreviewIssue } from '#model/preview.ts'
import type { SuggestedColumn, Suggestion } from '#model/suggestion.ts'
import { type ProfileNode, profileLimits, profileSamples } from '#records/sample-profile.ts'
import { compileView } from '#views/compile.ts'
import { PathError, parsePath, printPath, type Step } from '#views/json-path.ts'
import { nameColumns } from './column-names.ts'
import { tryView } from './preview.ts'
import { withNames } from './preview-report.ts'
import { guessTime } from './time-guess.ts'

/** With fewer samples no column is suggested as required. */
export const REQUIRED_SAMPLES_MIN = 10
/** An object with more names than this, each found in a small share of the samples, is a map whose keys are data. */
const MAP_NAMES_MIN = 32
const MAP_SHARE_MAX = 0.25
const WARNINGS_MAX = 200

export type SuggestOptions = { readonly clock: Clock; readonly timeoutMs: number }

type Candidate = {
  readonly node: ProfileNode
  readonly steps: readonly Step[]
  readonly path: string
  readonly type: string
  /** How times at the path are written if not in ISO 8601. `type` is what the column has without it. */
  readonly format?: string
  /** Why the type is not that of the values. */
  readonly note?: Pick<PreviewIssue, 'code' | 'message'>
}

export async function suggestView(samples: readonly string[], { clock, timeoutMs }: SuggestOptions): Promise<Suggestion> {
  const endsAt = clock.monotonic() + timeoutMs
  const profile = profileSamples(samples)
  const warnings: PreviewIssue[] = profile.unreadable.map(({ index, message }) =>
    warning('invalid_json', `the sample was skipped: ${message}`, { sample_index: index }),
  )
  if (profile.isCut) {
    warnings.push(warning('too_many_paths', `only the first ${profileLimits.nodesMax} paths of the samples were read`))
  }
  const found = findCandidates(profile.root, warnings)
  const chosen = keepMostFrequent(found)
  if (chosen.length < found.length) {
    const left = `${found.length - chosen.length} less frequent paths were left out`
    warnings.push(warning('too_many_columns', `a view has at most ${definitionLimits.columnsMax} columns: ${left}`))
  }
  const names = nameColumns(chosen)
  for (const [index, { note }] of chosen.entries()) {
    if (note !== undefined) warnings.push(warning(note.code, note.message, { column: names[index] ?? null }))
  }
  const columns = chosen.map(({ node, path, type, format }, index): TriedColumn => {
    const isRequired = profile.samples >= REQUIRED_SAMPLES_MIN && node.found === profile.samples
    const read = format === undefined ? { type, path } : { type: 'TIMESTAMP', path, format }
    return { column: { name: names[index] ?? '', ...read, ...(isRequired ? { required: true } : {}) }, plainType: type }
  })
  const readable = samples.filter((_, index) => profile.unreadable.every((sample) => sample.index !== index))
  const suggested = columns.length === 0 ? [] : await verifyColumns(columns, readable, clock, endsAt, warnings)
  const stats = suggested.map(({ name, path, type }, index): SuggestedColumn => {
    const { found: count = 0, nulls = 0 } = chosen[index]?.node ?? {}
    return { name, path, type, found: count, nulls, missing: profile.samples - count - nulls }
  })
  warnings.push(...namesOf(suggested))
  return {
    definition: suggested.length === 0 ? null : withListForm({ columns: suggested }),
    warnings: warnings.slice(0, WARNINGS_MAX),
    sample_count: profile.samples,
    columns: stats,
  }
}

/** A suggested column: none has an expression. */
type PathColumn = Column & { readonly path: string }

/** A column, and the type that it has if its format does not fit. */
type TriedColumn = { readonly column: PathColumn; readonly plainType: string }

function namesOf(columns: Column[]): readonly PreviewIssue[] {
  const names = nameWarnings({ columns }).map((each) => ({ ...each, path: `definition.${each.path}` }))
  return withNames({ warnings: [] }, names).warnings
}

/** Tries the columns, and makes those with errors or warnings optional JSON. One whose format does not fit is tried without it. */
async function verifyColumns(
  given: readonly TriedColumn[],
  samples: readonly string[],
  clock: Clock,
  endsAt: number,
  warnings: PreviewIssue[],
): Promise<PathColumn[]> {
  const columns = given.map(({ column }) => column)
  const view = await compileView(withListForm({ columns }))
  const timeoutMs = Math.max(1, endsAt - clock.monotonic())
  const tried = await tryView(view, samples, { clock, timeoutMs }, timeoutMs)
  const faulty = new Map([...tried.errors, ...tried.warnings].map(({ column, message }) => [column, message]))
  const isMisread = ({ name, format }: Column): boolean => format !== undefined && faulty.has(name)
  if (columns.some(isMisread)) {
    const plain = given.map(({ column, plainType }) => {
      if (!isMisread(column)) return { column, plainType }
      const { format: _, ...rest } = column
      return { column: { ...rest, type: plainType }, plainType }
    })
    const misread = new Set(columns.filter(isMisread).map(({ name }) => name))
    warnings.splice(
      0,
      warnings.length,
      ...warnings.filter(({ code, column }) => code !== formatNote || !misread.has(column ?? '')),
    )
    return verifyColumns(plain, samples, clock, endsAt, warnings)
  }
  warnings.push(...tried.errors.filter(({ column }) => column === null))
  return columns.map(({ required, ...column }) => {
    const reason = faulty.get(column.name)
    if (reason === undefined) return required === undefined ? column : { ...column, required }
    warnings.push(warning('does_not_fit', `it becomes a JSON column: as ${column.type}, ${reason}`, { column: column.name }))
    return { ...column, type: column.path.includes('[*]') ? 'JSON[]' : 'JSON' }
  })
}

/** Returns the possible columns, in the order of the samples. */
function findCandidates(root: ProfileNode, warnings: PreviewIssue[]): readonly Candidate[] {
  const found: Candidate[] = []
  const add = (node: ProfileNode, type: string, note?: Candidate['note'], format?: string): void => {
    const { steps } = node
    const path = pathTo(steps)
    if (path === undefined) {
      warnings.push(warning('not_addressable', `no path can name ${quotedPath(steps)}`))
    } else found.push({ node, steps, path, type, ...(note && { note }), ...(format && { format }) })
  }
  const addScalar = (node: ProfileNode, type: string): void => {
    const guess = guessTime(lastNameOf(node.steps), mayBeTime(type) ? (node.short ?? []) : [])
    if (guess === undefined) add(node, type)
    else add(node, type, { code: formatNote, message: `${quotedPath(node.steps)} ${guess.reason}` }, guess.format)
  }
  const visit = (node: ProfileNode, isInList: boolean): void => {
    if (node.found === 0) {
      if (node.steps.length > 0)
        warnings.push(warning('always_null', `${quotedPath(node.steps)} is null in every sample that has it`))
      return
    }
    const [kind, ...others] = node.kinds
    if (others.length === 0 && kind === 'object' && node.names.size > 0 && !isMap(node)) {
      const { length: before } = found
      for (const inner of node.names.values()) visit(inner, isInList)
      // The profile goes no deeper.
      if (found.length === before && node.steps.length === profileLimits.depthMax) add(node, jsonOf(isInList))
      return
    }
    const isList = others.length === 0 && kind === 'list'
    if (isList && !isInList && node.items !== undefined && isPlainObject(node.items)) {
      visit(node.items, true)
      return
    }
    const type = isList ? listOf(node) : scalarOf(node)
    if (type === undefined) {
      add(node, jsonOf(isInList), mixed(isList ? node.items : node))
    } else if (isInList || isList) add(node, isInList ? `${type}[]` : type)
    else addScalar(node, type)
  }
  visit(root, false)
  return found
}

const formatNote = 'time_format'

/** Other types are narrower already, or no text or number. */
function mayBeTime(type: string): boolean {
  return type === 'BIGINT' || type === 'DOUBLE' || type === 'VARCHAR'
}

function lastNameOf(steps: readonly Step[]): string {
  const last = steps.at(-1)
  return typeof last === 'object' && 'key' in last ? last.key : ''
}

/** Returns what to say of values of several kinds; undefined if they are of one. */
function mixed(node: ProfileNode | undefined): Candidate['note'] {
  if (node === undefined || node.kinds.size < 2) return undefined
  const message = `${quotedPath(node.steps)} is ${[...node.kinds].join(' and ')}: it becomes a JSON column`
  return { code: 'mixed_types', message }
}

function isPlainObject(node: ProfileNode): boolean {
  return node.kinds.size === 1 && node.kinds.has('object') && node.names.size > 0 && !isMap(node)
}

/** Whether the names are data: there are many, each in few samples. */
function isMap({ names, found }: ProfileNode): boolean {
  if (names.size < MAP_NAMES_MIN) return false
  const all = [...names.values()].reduce((sum, inner) => sum + inner.found + inner.nulls, 0)
  return all / names.size <= MAP_SHARE_MAX * Math.max(found, 1)
}

function jsonOf(isInList: boolean): string {
  return isInList ? 'JSON[]' : 'JSON'
}

/** Returns the type of a list of scalars, or of lists of scalars; undefined if there is none. */
function listOf(node: ProfileNode, depth = 1): string | undefined {
  const { items } = node
  if (items === undefined || items.found === 0) return undefined
  const isList = items.kinds.size === 1 && items.kinds.has('list')
  if (isList) return depth < 3 ? append(listOf(items, depth + 1)) : undefined
  return append(scalarOf(items))
}

function append(type: string | undefined): string | undefined {
  return type === undefined ? undefined : `${type}[]`
}

const ofTexts = { uuid: 'UUID', date: 'DATE', timestamp: 'TIMESTAMP', other: 'VARCHAR' } as const

/** Returns the narrowest type that accepts all values; undefined if only JSON does. */
function scalarOf({ kinds, texts, digits, fitsBigint, fitsDouble }: ProfileNode): string | undefined {
  const is = (...kind: string[]) => [...kinds].every((one) => kind.includes(one))
  if (is('boolean')) return 'BOOLEAN'
  if (is('text')) return ofTexts[texts ?? 'other']
  // In Parquet, HUGEINT is a decimal of 38 digits. Longer integers keep their digits as text.
  if (is('integer')) return fitsBigint ? 'BIGINT' : digits <= 38 ? 'HUGEINT' : 'VARCHAR'
  if (is('integer', 'fraction')) return fitsDouble ? 'DOUBLE' : 'VARCHAR'
  return undefined
}

/** Returns the most frequent candidates, in the order of the samples. */
function keepMostFrequent(found: readonly Candidate[]): readonly Candidate[] {
  const byFrequency = [...found.entries()].toSorted(([at, a], [bt, b]) => b.node.found - a.node.found || at - bt)
  const kept = byFrequency.slice(0, definitionLimits.columnsMax).toSorted(([at], [bt]) => at - bt)
  return kept.map(([, candidate]) => candidate)
}

/** Returns the path; undefined if no path can name these steps. */
function pathTo(steps: readonly Step[]): string | undefined {
  const path = printPath(steps)
  try {
    parsePath(path)
  } catch (error) {
    if (error instanceof PathError) return undefined
    throw error
  }
  return path.length > definitionLimits.pathCharsMax ? undefined : path
}

function quotedPath(steps: readonly Step[]): string {
  const path = printPath(steps).toWellFormed()
  return JSON.stringify(path.length > 100 ? `${path.slice(0, 100)}…` : path)
}

type About = Partial<Pick<PreviewIssue, 'sample_index' | 'column'>>

function warning(code: string, message: string, { sample_index = null, column = null }: About = {}): PreviewIssue {
  return { sample_index, column, code, message }
}
