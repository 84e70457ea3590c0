/**
 * Brings the parts of a condition to one type.
 *
 * Owns: which part is read as which type. Does not own: the casts (cast-sql.ts), the values of constants (text-constants.ts).
 * Law: where DuckDB would read a text differently from a column of the type, it does not read it.
 */
import { type ColumnType, descriptorOf, printType } from '#model/types/column-type.ts'
import { castList, castText, portable } from './cast-sql.ts'
import { ConditionError, type Part, quoted, type TextSize, writtenAs } from './condition.ts'
import { type ConditionBudget, castSize, constantSize, sizeBeside } from './condition-budget.ts'
import {
  doubleType,
  elementOf,
  filteredType,
  instantType,
  isList,
  isNumber,
  isScalar,
  kindOf,
  readsTextOtherwise,
  textType,
} from './filter-types.ts'
import type { ConstantCheck, TextConstants } from './text-constants.ts'

export class PartValues {
  readonly #constants: TextConstants
  readonly #budget: ConditionBudget

  readonly #failedCast: 'null' | 'error'
  readonly #isNew: boolean

  constructor(
    constants: TextConstants,
    {
      budget,
      failedCast,
      isNew,
    }: { readonly budget: ConditionBudget; readonly failedCast: 'null' | 'error'; readonly isNew: boolean },
  ) {
    this.#constants = constants
    this.#budget = budget
    this.#failedCast = failedCast
    this.#isNew = isNew
  }

  /** Has a constant checked when the constants are read. */
  check(check: ConstantCheck): void {
    this.#constants.check(check)
  }

  /** Has a regular expression checked when the constants are read. */
  checkPattern(pattern: string, at: number | undefined): void {
    this.#constants.checkPattern(pattern, at)
  }

  /** Returns parts that are compared. Text beside another type is read as a value of that type. */
  compared(parts: readonly Part[]): readonly Part[] {
    const target = targetOf(parts)
    const compared = target === undefined ? parts : parts.map((part) => this.#coerceTo(part, target))
    this.#budget.countCasts(compared)
    return compared
  }

  /** Returns a list and a value that it may contain. */
  member(list: Part, value: Part): readonly Part[] {
    if (!isList(list.type)) return [list, value]
    const element: Part = { ...list, type: elementOf(list.type), isElement: true }
    const target = targetOf([element, value])
    if (target === undefined) return [list, value]
    this.#checkComparable(element, target)
    return target === 'number'
      ? [list, this.#coerceTo(value, target)]
      : [this.#coerceTo(list, { ...target, depth: target.depth + 1 }), this.#coerceTo(value, target)]
  }

  /** Returns parts of which one becomes the result, and its type. DuckDB makes everything text if one of them is text. */
  combined(given: readonly Part[]): { readonly parts: readonly Part[]; readonly type: Part['type'] } {
    const target = targetOf(given)
    const parts = given.map((part) => ({ ...part, size: sizeBeside(part, given) }))
    const other = parts.find(({ text, type }) => text === undefined && isScalar(type, 'VARCHAR', 'JSON'))
    if (target === undefined || other !== undefined) {
      const type = other?.type ?? target ?? (parts.some(({ text }) => text !== undefined) ? textType : 'unknown')
      return { parts, type }
    }
    return { parts: parts.map((part) => (part.text === undefined ? part : this.#coerceTo(part, target))), type: target }
  }

  /** Returns the part as DuckDB's functions of time take it. */
  instant(part: Part): Part {
    return part.text === undefined ? part : this.constant(part.text, instantType, part.at)
  }

  cast(part: Part, to: ColumnType, isTry = false): Part {
    if (part.text !== undefined) return this.constant(part.text, to, part.at)
    const type = filteredType(to)
    const mayFail = !isTry && this.#failedCast === 'error'
    const read = readsTextOtherwise(type) ? this.#readFromText(part, type, mayFail) : part
    if (read !== part) return read
    const printed = printType(type)
    const cast = mayFail ? 'CAST' : 'TRY_CAST'
    return { sql: (column) => `${cast}(${part.sql(column)} AS ${printed})`, type, size: this.#sizeOfCast(part, type) }
  }

  #sizeOfCast(part: Part, type: ColumnType): TextSize {
    return this.#budget.sizeOf(type, [{ size: castSize(part, type) }])
  }

  /** Returns the value of a text constant, as a column of the type would read it. */
  constant(text: string, to: ColumnType, at: number | undefined): Part {
    const type = filteredType(to)
    return {
      sql: this.#constants.valueOf(text, type, at),
      at,
      type,
      size: this.#budget.sizeOf(type, [{ size: constantSize(text) }]),
    }
  }

  #coerceTo(part: Part, target: ColumnType | 'number'): Part {
    const { text } = part
    if (text === undefined) {
      this.#checkComparable(part, target)
      return typeof target === 'object' && readsTextOtherwise(target) ? this.#readFromText(part, target) : part
    }
    if (target !== 'number') return this.constant(text, target, part.at)
    // DuckDB decides which number it is.
    this.#constants.valueOf(text, doubleType, part.at)
    return part
  }

  #checkComparable(part: Part, target: ColumnType | 'number'): void {
    checkComparable(part, target)
    if (!this.#isNew || typeof target !== 'object' || readsTextOtherwise(target) || !isScalar(part.type, 'VARCHAR', 'JSON'))
      return
    if (descriptorOf(target.scalar).acceptsAnyText === true) return
    // DuckDB would cast the text, and one that does not fit would make the whole condition unknown.
    const type = printType(target)
    throw new ConditionError(
      `compares ${described(part)} with a value of type ${type}: cast it with ${castOf(part, type)}`,
      'wrong_type',
    ).of(part)
  }

  /** Returns the part itself if it has no text in it. */
  #readFromText(part: Part, type: ColumnType, mayFail = false): Part {
    const toValue = textReader(part.type, type)
    if (toValue === undefined) return part
    this.#budget.countTimeCast()
    // Times in a list are read in several steps, and each makes a list.
    if (isList(type)) for (const _ of ['guarded', 'read']) this.#sizeOfCast(part, type)
    // A lambda evaluates the part once, however often the cast mentions it.
    const body = mayFail ? orError(toValue('x'), 'x', type) : toValue('x')
    const sql: Part['sql'] = (column) => `list_transform([${part.sql(column)}], lambda x: ${body})[1]`
    return { sql, type, size: this.#sizeOfCast(part, type) }
  }
}

/** SQL that fails where there is a text but no value: no text with a question mark at its start is a time. */
function orError(value: string, text: string, type: ColumnType): string {
  return `coalesce(${value}, CASE WHEN ${text} IS NOT NULL THEN CAST('?' || CAST(${text} AS VARCHAR) AS ${printType(type)}) END)`
}

/** Returns the type that text is brought to; undefined if all parts are text. Lists of text come last. */
function targetOf(parts: readonly Part[]): ColumnType | 'number' | undefined {
  const types = parts.map(({ type }) => type).filter((type) => type !== 'unknown')
  return (
    // A date beside a timestamp is a timestamp.
    types.find((type) => isScalar(type, 'TIMESTAMP')) ??
    types.find((type) => type === 'number' || descriptorOf(type.scalar).acceptsAnyText !== true) ??
    types.find((type) => isList(type))
  )
}

/** Returns a function from SQL for text, JSON or a list of text to SQL for a value of the type; undefined for anything else. */
function textReader(from: Part['type'], type: ColumnType): ((sql: string) => string) | undefined {
  const isJson = isScalar(from, 'JSON')
  if (isJson || isScalar(from, 'VARCHAR')) {
    if (type.depth > 0) return (sql) => portable(castList(isJson ? sql : `CAST(${sql} AS JSON)`, 'JSON', type), type)
    return (sql) => portable(castText(isJson ? `json_extract_string(${sql}, '$')` : sql, type), type)
  }
  const isListOfText = isList(from) && descriptorOf(from.scalar).acceptsAnyText === true
  return isListOfText && type.depth > 0 ? (sql) => portable(castList(`to_json(${sql})`, 'JSON', type), type) : undefined
}

function checkComparable(part: Part, target: ColumnType | 'number'): void {
  const { type } = part
  const isTime = (each: Part['type']): boolean => isScalar(each, 'TIMESTAMP', 'DATE', 'TIME')
  if ((isTime(type) && isNumber(target)) || (isNumber(type) && isTime(target))) {
    throw new ConditionError(
      "compares a time with a number: write the time as text, such as '2026-01-01T00:00:00Z', or compare seconds with epoch(…)",
      'wrong_type',
    ).of(part)
  }
  if (!isNumber(target) || !isScalar(type, 'VARCHAR', 'JSON')) return
  const quotes = isScalar(type, 'JSON') ? '' : 'write the number in quotes, or '
  throw new ConditionError(
    `compares ${described(part)} with a number: ${quotes}cast the ${kindOf(type)} with ${castOf(part, 'DOUBLE')}`,
    'wrong_type',
  ).of(part)
}

function described(part: Part): string {
  const kind = kindOf(part.type)
  if (part.column === undefined) return kind
  const name = quoted(part.column)
  return part.isElement === true ? `elements of ${name}, which are ${kind},` : `${name}, which is ${kind},`
}

/** Writes the cast that an author needs. */
function castOf(part: Part, type: string): string {
  return `CAST(${writtenAs(part)} AS ${type}${part.isElement === true ? '[]' : ''})`
}
