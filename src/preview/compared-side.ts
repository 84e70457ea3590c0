/** Counts what one definition makes of records that two definitions decide. */
import type { Value } from '#duckdb/database.ts'
import type { ComparedSide } from '#model/view-comparison.ts'
import type { CompiledColumn, CompiledView } from '#views/compiled-view.ts'
import { columnOf, isDlq, isMissing, MASK_COLUMNS, verdicts } from '#views/extraction.ts'
import { printExpand } from '#views/json-path.ts'

/** Verdicts that rows get after those of the statement: another row of the record has an error, or one before has the same key. */
export const laterVerdicts = { ofRefused: -100, duplicate: -101 } as const

/** A figure of a piece: the relation that has it, SQL for it, and where it is added. */
export type Figure = { readonly from: string; readonly sql: string; readonly add: (count: number) => void }

export type WrittenColumn = { readonly index: number; readonly column: CompiledColumn }

/** The columns of decided records and rows that belong to one side. */
export class SideNames {
  readonly prefix: 'before' | 'after'
  readonly verdict: string
  readonly castNulls: string
  readonly moreCastNulls: string
  readonly failed: string
  /** The path of the element with the error. */
  readonly item: string

  constructor(prefix: 'before' | 'after') {
    this.prefix = prefix
    this.verdict = `${prefix}_verdict`
    this.castNulls = `${prefix}_cast_nulls`
    this.moreCastNulls = `${prefix}_more_cast_nulls`
    this.failed = `${prefix}_failed`
    this.item = `${prefix}_item`
  }

  value(column: number): string {
    return `${this.prefix}_${column}`
  }

  /** Names of an extraction, renamed. `view` is the position there, `values` are the names of its values. */
  select(view: number, values: readonly string[]): string {
    const outcome = [
      `verdict_${view} AS ${this.verdict}`,
      `cast_nulls_${view} AS ${this.castNulls}`,
      `more_cast_nulls_${view} AS ${this.moreCastNulls}`,
      `failed_${view} AS ${this.failed}`,
    ]
    return [...outcome, ...values.map((value, column) => `${value} AS ${this.value(column)}`)].join(', ')
  }

  /** SQL for `accepted`, `dropped` or `dlq`. */
  get outcome(): string {
    return `CASE WHEN ${this.verdict} = ${verdicts.accepted} THEN 'accepted' WHEN ${isDlq(this.verdict)} THEN 'dlq' ELSE 'dropped' END`
  }
}

type DeadLetters = ComparedSide['dead_letters'][number]

export class SideCounts {
  readonly view: CompiledView
  readonly names: SideNames
  readonly written: readonly WrittenColumn[]
  readonly nulls: number[]
  readonly castNulls: number[]
  readonly #total = { accepted: 0, dropped: 0, dlq: 0, rows: 0, duplicates: 0, castNulls: 0 }
  readonly #deadLetters = new Map<string, DeadLetters>()

  constructor(view: CompiledView, names: SideNames) {
    this.view = view
    this.names = names
    this.written = view.columns.flatMap((column, index) => (column.hidden ? [] : [{ index, column }]))
    this.nulls = view.columns.map(() => 0)
    this.castNulls = view.columns.map(() => 0)
  }

  get rows(): number {
    return this.#total.rows
  }

  get duplicates(): number {
    return this.#total.duplicates
  }

  /** `records` has the outcomes of records, `rows` those of rows: of the same relation unless an array is expanded. */
  figures(records: string, rows: string): readonly Figure[] {
    const { verdict, castNulls, moreCastNulls, outcome } = this.names
    const total = this.#total
    const isAccepted = `${verdict} = ${verdicts.accepted}`
    // A value only became NULL if the row was not rejected for another reason.
    const keepsNulls = `${verdict} IN (${verdicts.accepted}, ${verdicts.filterUnknown})`
    const counted = (['accepted', 'dropped', 'dlq'] as const).map((name) => ({
      from: records,
      sql: `count(*) FILTER (WHERE ${outcome} = '${name}')`,
      add: (count: number) => {
        total[name] += count
      },
    }))
    const ofColumns = this.written.flatMap(({ index }) => {
      const [mask, bit] = [index < MASK_COLUMNS ? castNulls : moreCastNulls, 2n ** BigInt(index % MASK_COLUMNS)]
      return [
        {
          from: rows,
          sql: `count(*) FILTER (WHERE ${isAccepted} AND ${this.names.value(index)} IS NULL)`,
          add: (count: number) => {
            this.nulls[index] = (this.nulls[index] ?? 0) + count
          },
        },
        {
          from: rows,
          sql: `count(*) FILTER (WHERE ${keepsNulls} AND (${mask} & CAST(${bit} AS BIGINT)) <> 0)`,
          add: (count: number) => {
            this.castNulls[index] = (this.castNulls[index] ?? 0) + count
          },
        },
      ]
    })
    const ofRows = (['rows', 'duplicates'] as const).map((name) => ({
      from: rows,
      sql: `count(*) FILTER (WHERE ${name === 'rows' ? isAccepted : `${verdict} = ${laterVerdicts.duplicate}`})`,
      add: (count: number) => {
        total[name] += count
      },
    }))
    const allCastNulls = {
      from: rows,
      sql: `coalesce(sum(bit_count(${castNulls}) + bit_count(${moreCastNulls})) FILTER (WHERE ${keepsNulls}), 0)`,
      add: (count: number) => {
        total.castNulls += count
      },
    }
    return [...counted, ...ofRows, ...ofColumns, allCastNulls]
  }

  /** SQL for the number of dead letters by verdict, and by whether the payload is no text. */
  deadLettersSql(decided: string): string {
    const { verdict } = this.names
    return `SELECT ${verdict}, is_binary, count(*) FROM ${decided} WHERE ${isDlq(verdict)} GROUP BY ALL`
  }

  addDeadLetters(rows: readonly (readonly Value[])[]): void {
    for (const [verdict, isBinary, count] of rows) {
      const reason = this.#reasonOf(Number(verdict), isBinary === true)
      const key = JSON.stringify(reason)
      const records = (this.#deadLetters.get(key)?.records ?? 0) + Number(count)
      this.#deadLetters.set(key, { ...reason, records })
    }
  }

  report(): Omit<ComparedSide, 'view_id' | 'version' | 'dedupe_within'> {
    const { castNulls: cast_nulls, ...counts } = this.#total
    const { expand } = this.view
    const dead_letters = [...this.#deadLetters.values()].toSorted(
      (a, b) => b.records - a.records || `${a.error_code} ${a.column}`.localeCompare(`${b.error_code} ${b.column}`),
    )
    return { expand: expand === undefined ? null : printExpand(expand), ...counts, cast_nulls, dead_letters }
  }

  /** The same as in the DLQ (records/dlq.ts). */
  #reasonOf(verdict: number, isBinary: boolean): Omit<DeadLetters, 'records'> {
    if (verdict === verdicts.expandFailed) return { error_code: 'expand_failed', column: null }
    if (verdict === verdicts.tooComplex) return { error_code: 'too_complex', column: null }
    if (verdict === verdicts.unreadable) return { error_code: isBinary ? 'invalid_utf8' : 'invalid_json', column: null }
    const column = this.view.columns[columnOf(verdict)]?.name ?? ''
    return { error_code: isMissing(verdict) ? 'missing_required' : 'cast_failed', column }
  }
}
