/**
 * Text constants of a condition that are values of another type, or patterns.
 *
 * Law: a constant is read once, when the view is compiled, by the rules for columns. A text that is not a value or a pattern is reported to
 * the author.
 */
import type { Connection } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { must } from '#lib/assert.ts'
import { errorMessage } from '#lib/error-message.ts'
import { type ColumnType, printType, storedType } from '#model/types/column-type.ts'
import { castList, castText, portable } from './cast-sql.ts'
import { type Condition, ConditionError, quoted } from './condition.ts'
import { readsTextOtherwise, textType } from './filter-types.ts'

/** A statement that shows whether a constant can be used. Its outcome does not depend on records. */
export type ConstantCheck = {
  readonly sql: string
  /** Returns what is wrong with the constant, from the only value of the result. */
  readonly problemWith: (value: unknown) => string | undefined
  /** Returns what is wrong with it if the statement fails. */
  readonly failed?: (reason: string) => string
  /** Where the constant is: a byte of the parsed text. */
  readonly at?: number | undefined
}

/** The values by text, as DuckDB prints them; undefined until they are read. */
type Constants = { readonly type: ColumnType; readonly values: Map<string, { value?: string; readonly at: number | undefined }> }

export class TextConstants {
  readonly #byType = new Map<string, Constants>()
  readonly #checks = new Map<string, ConstantCheck>()

  /** Has a constant checked by `read`. */
  check(check: ConstantCheck): void {
    this.#checks.set(check.sql, check)
  }

  /** Has a regular expression checked by `read`. DuckDB itself looks at some patterns only when it meets the first text. */
  checkPattern(pattern: string, at: number | undefined): void {
    this.check({
      at,
      sql: `SELECT regexp_matches('', ${quoteLiteral(pattern)})`,
      problemWith: () => undefined,
      failed: (reason) => `the pattern ${quoted(pattern)} cannot be read: ${reason}`,
    })
  }

  /** Returns SQL for the value. It is known after `read`. */
  valueOf(text: string, type: ColumnType, at: number | undefined): Condition {
    const printed = printType(type)
    const { values } = this.#byType.get(printed) ?? { values: new Map() }
    this.#byType.set(printed, { type, values: values.set(text, values.get(text) ?? { at }) })
    const stored = printType(storedType(type))
    const isOwnForm = stored === printed && !readsTextOtherwise(type)
    return () => `CAST(${quoteLiteral(isOwnForm ? text : (values.get(text)?.value ?? ''))} AS ${stored})`
  }

  /** Throws ConditionError for a text that is not a value of its type, or that a check refuses. */
  async read(connection: Connection, timeoutMs: number): Promise<void> {
    for (const check of this.#checks.values()) await checkConstant(connection, check, timeoutMs)
    for (const { type, values } of this.#byType.values()) {
      const texts = [...values.keys()]
      const given = texts.map((text, index) => `(${index}, ${quoteLiteral(text)})`).join(', ')
      const sql = `SELECT CAST(${readSql('text', type)} AS VARCHAR) FROM (VALUES ${given}) AS given(number, text) ORDER BY number`
      const { rows } = await connection.query(sql, { timeoutMs })
      for (const [index, text] of texts.entries()) {
        const value = rows[index]?.[0] ?? null
        const constant = must(values.get(text), 'a constant')
        if (value === null) {
          throw new ConditionError(`the text ${quoted(text)} is not of type ${printType(type)}`, 'wrong_type').of(constant)
        }
        constant.value = String(value)
      }
    }
  }
}

/** Throws ConditionError if the constant cannot be used. */
export async function checkConstant(connection: Connection, check: ConstantCheck, timeoutMs: number): Promise<void> {
  const { sql, problemWith, failed } = check
  const { rows } = await connection.query(sql, { timeoutMs }).catch((error: unknown) => {
    throw failed === undefined ? error : new ConditionError(failed(duckdbReason(error))).of(check)
  })
  const problem = problemWith(rows[0]?.[0])
  if (problem !== undefined) throw new ConditionError(problem).of(check)
}

/** SQL for the value of a text. A list may be in DuckDB's notation, which includes JSON. */
function readSql(text: string, type: ColumnType): string {
  if (type.depth === 0) return portable(castText(text, type), type)
  if (!readsTextOtherwise(type)) return `TRY_CAST(${text} AS ${printType(storedType(type))})`
  const list = castList(`to_json(TRY_CAST(${text} AS ${printType({ ...textType, depth: type.depth })}))`, 'JSON', type)
  return portable(list, type)
}

/** Returns the first line of an error, without its kind. */
function duckdbReason(error: unknown): string {
  const [line = ''] = errorMessage(error).split('\n')
  return line.replace(/^[A-Z][\w ]* Error: /, '')
}
