/**
 * Decides the records of tests of views, with the compiler and the rules of delivery.
 *
 * Owns: the outcome of each record, and how expected values are read. Does not own: the rules of a row (views/), files with tests (cli/).
 * Law: an expected value is read as a value of a record would be, by the type of its column. So `9.5` and `"9.50"` are the same DECIMAL.
 */
import { StatementTimeout, type Value } from '#duckdb/database.ts'
import type { Clock } from '#lib/clock.ts'
import { type Definition, writtenColumns } from '#model/definition.ts'
import { viewTestLimits } from '#model/limits.ts'
import type { SecretValues } from '#model/secret.ts'
import { type ColumnType, printType } from '#model/types/column-type.ts'
import type { RecordDatabase } from '#records/record-database.ts'
import { compileView } from '#views/compile.ts'
import type { CompiledView } from '#views/compiled-view.ts'
import { verdicts } from '#views/extraction.ts'
import { parsePath } from '#views/json-path.ts'
import { decideSamples, openSampleDatabase, ResultTooLarge, type SampleOrigin } from './decide-samples.ts'
import { withDefinition } from './definitions.ts'

export type Row = Readonly<Record<string, Value>>

/** `record` is an index. A record has an outcome for each row, and one if it has none. */
export type RecordOutcome = { readonly record: number } & (
  | { readonly row: Row }
  | { readonly droppedBy: 'a false filter' | 'an unknown filter' | 'having no element' | 'a row with its key' }
  | { readonly deadLetter: DeadLetter }
)

type DeadLetter = {
  readonly error_code: string
  readonly column: string | null
  /** In a view that expands an array: the element with the error. */
  readonly item?: string
  readonly message: string
}

/** A value in the form of previews, or why it is none of its type. The problem is a predicate. */
export type ReadValue = { readonly value: Value } | { readonly problem: string }

/** The records of a view cannot be decided. */
export class UndecidedRecords extends Error {
  override readonly name = 'UndecidedRecords'
}

export type DecideOptions = {
  /** The origin of the record with an index. */
  readonly originOf: (record: number) => SampleOrigin
  /** Values of the secrets that the view names. */
  readonly secrets: SecretValues
  /** Records for which it returns different numbers are not compared by `dedupe_by`. */
  readonly segmentOf?: (record: number) => number
}

export class RecordDecider {
  readonly #database: RecordDatabase
  readonly #clock: Clock

  private constructor(database: RecordDatabase, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  static async open(clock: Clock): Promise<RecordDecider> {
    return new RecordDecider(await openSampleDatabase(), clock)
  }

  /** Throws AppError validation_error. */
  compile(definition: Definition): Promise<CompiledView> {
    return withDefinition(definition, 'json', (parsed) => compileView(parsed, { isNew: true }))
  }

  /** Returns what becomes of each record, in their order and that of their rows. Throws UndecidedRecords. */
  async decide(view: CompiledView, records: readonly string[], options: DecideOptions): Promise<readonly RecordOutcome[]> {
    const { decided, errors } = await this.#decide(view, records, options)
    const deadLetters = errors.map(({ sample_index, code: error_code, column, item, message }) => ({
      record: sample_index ?? 0,
      deadLetter: { error_code, column, ...(item !== undefined && { item }), message },
    }))
    const settled = new Set(deadLetters.map(({ record }) => record))
    for (const { index, isWritten } of decided) if (isWritten) settled.add(index)
    const written = [...view.columns.entries()].filter(([, { hidden }]) => !hidden)
    const others = decided.flatMap(({ index: record, verdict, isWritten, isDuplicate, values }): readonly RecordOutcome[] => {
      if (isWritten) return [{ record, row: Object.fromEntries(written.map(([at, { name }]) => [name, values[at] ?? null])) }]
      if (settled.has(record)) return []
      settled.add(record)
      if (isDuplicate) return [{ record, droppedBy: 'a row with its key' }]
      if (verdict === verdicts.filteredOut) return [{ record, droppedBy: 'a false filter' }]
      return [{ record, droppedBy: verdict === verdicts.noItem ? 'having no element' : 'an unknown filter' }]
    })
    return [...others, ...deadLetters].toSorted((one, other) => one.record - other.record)
  }

  /** Reads expected rows, which may have only some of the columns. Names of other columns are left out. Throws UndecidedRecords. */
  async readRows(
    view: CompiledView,
    rows: readonly Readonly<Record<string, unknown>>[],
  ): Promise<readonly ReadonlyMap<string, ReadValue>[]> {
    const columns = writtenColumns(view.columns)
    const expected = rows.map((row) =>
      columns.map(({ name, type }) => (Object.hasOwn(row, name) ? jsonOf(row[name], type) : 'null')),
    )
    const plain: CompiledView = {
      ...view,
      condition: undefined,
      secrets: [],
      expand: undefined,
      layout: { dedupeBy: [], partitionBy: [], sortBy: [], bloomFilters: true },
      columns: columns.map(({ name, type }, index) => ({
        ...{ name, type, source: parsePath(`$.c${index}`) },
        ...{ required: false, castFailures: 'null', hidden: false, parquet: undefined },
      })),
    }
    const records = expected.map((values) => `{${values.map((value, index) => `"c${index}":${value ?? 'null'}`).join(',')}}`)
    const { decided } = await this.#decide(plain, records, {
      originOf: () => ({ envelope: { protocol: 'http' }, receivedAtMs: 0 }),
      secrets: {},
    })
    return rows.map((row, index) => {
      const { values = [], failedTexts = [] } = decided[index] ?? {}
      const named = columns.flatMap(({ name, type }, at): readonly (readonly [string, ReadValue])[] => {
        if (!Object.hasOwn(row, name)) return []
        const value = values[at] ?? null
        const isRead = expected[index]?.[at] !== undefined && (failedTexts[at] ?? null) === null
        if (!isRead)
          return [[name, { problem: `is not of type ${printType(type)}: write a value that the column can have, or null` }]]
        if (isRounded(row[name], value, type))
          return [[name, { problem: `is ${JSON.stringify(value)} as ${printType(type)}: write that` }]]
        return [[name, { value }]]
      })
      return new Map(named)
    })
  }

  close(): void {
    this.#database.close()
  }

  async #decide(view: CompiledView, records: readonly string[], options: DecideOptions) {
    const clock = this.#clock
    const endsAt = clock.monotonic() + viewTestLimits.timeoutMs
    const statement = () => ({ timeoutMs: Math.max(1, endsAt - clock.monotonic()) })
    try {
      return await decideSamples(view, records, { ...options, statement, database: this.#database })
    } catch (error) {
      if (error instanceof StatementTimeout)
        throw new UndecidedRecords(`took longer than ${viewTestLimits.timeoutMs / 1000} s: test fewer or smaller records`)
      if (error instanceof ResultTooLarge)
        throw new UndecidedRecords('have rows that are too large: test fewer or smaller records')
      // After the first line DuckDB quotes the statement.
      const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
      throw new UndecidedRecords(`cannot be decided: ${line}`)
    }
  }
}

/** Returns a value as JSON; undefined if it has none. Text stands for JSON in a column of that type, as in previews. */
function jsonOf(value: unknown, type: ColumnType): string | undefined {
  if (type.scalar !== 'JSON' || value === null) return JSON.stringify(value)
  if (type.depth > 0 && Array.isArray(value)) {
    const items = value.map((item) => jsonOf(item, { ...type, depth: type.depth - 1 }))
    return items.includes(undefined) ? undefined : `[${items.join(',')}]`
  }
  if (typeof value !== 'string') return JSON.stringify(value)
  try {
    JSON.parse(value)
    return value
  } catch {
    return undefined
  }
}

/** Whether a number with other digits was expected: a column that rounds must not make a test pass. */
function isRounded(expected: unknown, read: Value, { scalar }: ColumnType): boolean {
  if (!/INT$|^DECIMAL/.test(scalar)) return false
  if (Array.isArray(expected) && Array.isArray(read))
    return expected.some((item, index) => isRounded(item, read[index] ?? null, { scalar, depth: 0 }))
  const digits = [expected, read].map((value) => digitsOf(String(value)))
  return !digits.includes(undefined) && digits[0] !== digits[1]
}

/** Returns a decimal number without leading and trailing zeros; undefined for any other text. */
function digitsOf(text: string): string | undefined {
  const [, sign = '', whole = '', fraction = ''] = /^([-+]?)0*(\d+)(?:\.(\d*?)0*)?$/.exec(text.trim()) ?? []
  return whole === '' ? undefined : `${sign === '-' && /[1-9]/.test(whole + fraction) ? '-' : ''}${whole}.${fraction}`
}
