/**
 * Compiles a view definition: checks everything, parses paths and types, turns filters and values into SQL.
 *
 * Owns: what a definition may contain. Does not own: the statement (extraction.ts), the rows (records/).
 * Law: definitions are hostile. Every problem is reported with its path in an AppError. Every definition that compiles here runs in delivery.
 */
import { type Connection, Database } from '#duckdb/database.ts'
import { AppError, type FieldError } from '#errors.ts'
import { must } from '#lib/assert.ts'
import { MiB } from '#lib/bytes.ts'
import { Definition, type Filter, type ListForm } from '#model/definition.ts'
import { parseFields } from '#model/field-errors.ts'
import { definitionLimits } from '#model/limits.ts'
import { type ColumnType, ColumnTypeError, descriptorOf, parseType } from '#model/types/column-type.ts'
import { formProblem } from '#model/types/file-form.ts'
import { checkFormat } from './column-format.ts'
import type { CompiledColumn, CompiledView, Computed, PatternBound } from './compiled-view.ts'
import {
  type Compiler,
  compileValue,
  fieldsIn,
  orderOfComputed,
  parseValue,
  type ReadColumn,
  typeOf,
} from './computed-columns.ts'
import { beginOf, type Condition, type ConditionColumn, ConditionError, type Node, type TextSize } from './condition.ts'
import { ConditionBudget, columnSize } from './condition-budget.ts'
import { findBits } from './envelope-fields.ts'
import { excerptOf } from './excerpt.ts'
import { extractionSql } from './extraction.ts'
import { compileExpression } from './filter.ts'
import { parseExpression } from './filter-parse.ts'
import { type Path, PathError, parseExpand, parsePath } from './json-path.ts'
import { readLayout } from './layout.ts'
import { SecretNames } from './secret-names.ts'

const COMPILER_MEMORY_BYTES = 64 * MiB

let compiler: Promise<Database> | undefined
const compiledByDefinition = new WeakMap<Definition, Promise<CompiledView>>()

export type CompileOptions = {
  /** The names of those that the account has. If not set, the definition may name any. */
  readonly secrets?: readonly string[] | undefined
  /** Whether somebody is writing the definition. Then expressions may not use values as if they had another type. Published versions may. */
  readonly isNew?: boolean
}

/** Throws AppError validation_error with every problem in `errors`. Without options, caches the result by definition object. */
export function compileView(definition: Definition, options?: CompileOptions): Promise<CompiledView> {
  if (options !== undefined) return compile(definition, options)
  const cached = compiledByDefinition.get(definition)
  if (cached !== undefined) return cached
  const compiled = compile(definition)
  if (typeof definition !== 'object' || definition === null) return compiled
  compiledByDefinition.set(definition, compiled)
  compiled.catch(() => compiledByDefinition.delete(definition))
  return compiled
}

async function compile(input: unknown, options?: CompileOptions): Promise<CompiledView> {
  compiler ??= openCompiler()
  const connection = await (await compiler).connect()
  try {
    return await compileOn(connection, input, options)
  } finally {
    connection.close()
  }
}

/** Opens the database that parses expressions and checks their types. */
export function openCompiler(): Promise<Database> {
  return Database.open({ directories: [], memoryBytes: COMPILER_MEMORY_BYTES })
}

/** Compiles on a connection of the caller. Throws as `compileView`. */
export async function compileOn(connection: Connection, input: unknown, options: CompileOptions = {}): Promise<CompiledView> {
  const parsed = parseFields(Definition, input)
  if (parsed.errors !== undefined) throw invalid(parsed.errors, parsed.omitted)
  return compileWith(connection, parsed.value, options)
}

async function compileWith(connection: Connection, definition: Definition, options: CompileOptions): Promise<CompiledView> {
  const errors: FieldError[] = []
  const declared: ReadColumn[] = []
  const { expand: array, lists } = definition
  const expand = array === undefined ? undefined : attempt(errors, 'expand', PathError, () => parseExpand(array))
  // If it could not be parsed, columns are read as if it could be: that problem comes first.
  const expands =
    array === undefined ? 'nothing' : expand !== undefined && expand.inner === undefined ? 'one array' : 'two arrays'
  for (const [index, column] of definition.columns.entries()) {
    declared.push(await readColumn(connection, column, index, { lists, expands, errors }))
  }
  const filters = await parseFilters(connection, definition.filters ?? [], errors)
  const trees = declared.flatMap(({ source }) => (source?.from === 'columns' ? [source.tree] : []))
  const fields = fieldsIn([...trees, ...filters.map(({ tree }) => tree)], declared)
  if (fields.length > definitionLimits.fieldsMax) {
    const message = `its expressions name ${fields.length} fields of the envelope: at most ${definitionLimits.fieldsMax} are allowed; read the others by columns with a path`
    throw invalid([...errors, { path: '', message, code: 'too_expensive' }])
  }
  if (expands === 'nothing') errors.push(...indexesOfItems(declared, filters))
  const columns = [...declared, ...fields]
  const expressions = new Expressions(connection, columns, options, errors)
  const compiled = await expressions.columns()
  const layout = readLayout(definition, columns, errors)
  const conditions = await expressions.conditions(filters)
  if (errors.length > 0) throw invalid(errors.toSorted((a, b) => placeOf(a) - placeOf(b)))
  const view = {
    columns: compiled,
    condition:
      conditions.length === 0
        ? undefined
        : (column: (index: number) => string) => conditions.map((each) => each(column)).join(' AND '),
    ...(expand && { expand: { ...expand, textsMade: expressions.budget.textsMade, readInExpressions: [...expressions.reads] } }),
    patternBound: expressions.patternBound(compiled),
  }
  const { sql } = extractionSql([view], { guarded: true, records: 'records' })
  return { ...view, layout, secrets: expressions.secrets.used, sql }
}

type ReadOptions = {
  readonly lists: ListForm | undefined
  readonly expands: 'nothing' | 'one array' | 'two arrays'
  readonly errors: FieldError[]
}

async function readColumn(
  connection: Connection,
  column: Definition['columns'][number],
  index: number,
  { lists, expands, errors }: ReadOptions,
): Promise<ReadColumn> {
  const at = `columns.${index}`
  const type = attempt(errors, `${at}.type`, ColumnTypeError, () => parseType(column.type))
  const { format } = column
  if (format !== undefined)
    await attemptLater(errors, { path: `${at}.format`, text: format }, () => checkFormat(connection, format, type))
  const source =
    column.value === undefined
      ? attempt(errors, `${at}.path`, PathError, () => ({
          ...inForm(parseColumnPath(column.path ?? '', expands), lists),
          ...(format === undefined ? {} : { format }),
        }))
      : await attemptLater(errors, { path: `${at}.value`, text: column.value }, () => parseValue(connection, column.value ?? ''))
  if (type !== undefined) {
    const form = formProblem(type, column.parquet)
    if (form !== undefined) errors.push({ path: `${at}.parquet`, message: form })
    const misfit = source && misfitOf(source, type)
    if (misfit !== undefined) errors.push({ path: `${at}.type`, message: misfit })
  }
  const { name, required = false, cast_failures: castFailures = 'null', hidden = false, parquet } = column
  return { name, source, type, required, castFailures, hidden, parquet }
}

/** Returns why a path cannot have a type. */
function misfitOf(source: NonNullable<ReadColumn['source']>, type: ColumnType): string | undefined {
  if (source.from === 'record' && source.hasEach && type.depth === 0)
    return 'must be a list such as VARCHAR[], because the path has [*]'
  if ((source.from === 'envelope' || source.from === 'item_index') && (type.depth > 0 || descriptorOf(type.scalar).readsJson))
    return 'must be a scalar such as VARCHAR or TIMESTAMP, because the path names a field of the envelope'
  return undefined
}

const needsExpand = 'needs expand in the definition, such as "expand": "$.items[*]": then each element of the array is a row'

/** Throws PathError. */
function parseColumnPath(text: string, expands: ReadOptions['expands']): Path {
  const path = parsePath(text)
  const isOfRecord = path.from === 'envelope' || (path.from === 'record' && path.of === undefined)
  if (!isOfRecord && expands === 'nothing') throw new PathError(needsExpand)
  if (path.from === 'record' && path.of === 'parent' && expands === 'one array')
    throw new PathError('needs an expand with two [*], such as $.orders[*].items[*]: with one, the record is at $')
  return path
}

/** Returns an error for each expression that reads the position of an element in a view without elements. */
function indexesOfItems(columns: readonly ReadColumn[], filters: readonly ParsedFilter[]): readonly FieldError[] {
  const values = columns.flatMap(({ source }, index) =>
    source?.from === 'columns' ? [{ path: `columns.${index}.value`, tree: source.tree }] : [],
  )
  const isIndex = ({ source }: ReadColumn) => source?.from === 'item_index'
  return [...values, ...filters].flatMap(({ path, tree }) => {
    const [field] = fieldsIn([tree], columns).filter(isIndex)
    return field === undefined ? [] : [{ path, message: `${field.name} ${needsExpand}`, code: 'not_allowed' as const }]
  })
}

/** Versions that are older than the choice have packed lists. */
function inForm(path: Path, lists: ListForm = 'packed'): Path {
  return path.from === 'record' && path.hasEach && lists === 'aligned' ? { ...path, isAligned: true } : path
}

type Place = { readonly path: string; readonly text: string }
type ParsedFilter = Place & { readonly tree: Node }

async function parseFilters(
  connection: Connection,
  filters: readonly Filter[],
  errors: FieldError[],
): Promise<readonly ParsedFilter[]> {
  const parsed: ParsedFilter[] = []
  for (const [index, { condition }] of filters.entries()) {
    const place = { path: `filters.${index}.condition`, text: condition }
    const tree = await attemptLater(errors, place, () =>
      parseExpression(connection, condition, definitionLimits.compileTimeoutMs),
    )
    if (tree !== undefined) parsed.push({ ...place, tree })
  }
  return parsed
}

/** Compiles the expressions of a view. Those that fail are in `errors`. */
class Expressions {
  readonly budget = new ConditionBudget()
  readonly secrets: SecretNames
  /** The columns that they name, by index. */
  readonly reads = new Set<number>()
  readonly #connection: Connection
  readonly #read: readonly ReadColumn[]
  readonly #isNew: boolean
  readonly #errors: FieldError[]
  /** Types are checked only if all columns have one. */
  readonly #isTyped: boolean
  readonly #columns: ConditionColumn[]

  constructor(connection: Connection, read: readonly ReadColumn[], options: CompileOptions, errors: FieldError[]) {
    this.#connection = connection
    this.#read = read
    this.secrets = new SecretNames(options.secrets)
    this.#isNew = options.isNew ?? false
    this.#errors = errors
    this.#isTyped = errors.length === 0
    this.#columns = read.map(({ name, type }) => ({ name, type: this.#isTyped ? type : undefined }))
  }

  async columns(): Promise<readonly CompiledColumn[]> {
    const values = await this.#values()
    return this.#read.flatMap((column, index) => {
      const { source, type } = column
      const compiled = source?.from === 'columns' ? values.get(index) : source
      return compiled === undefined || type === undefined ? [] : [{ ...column, source: compiled, type }]
    })
  }

  async conditions(filters: readonly ParsedFilter[]): Promise<readonly Condition[]> {
    const conditions: Condition[] = []
    for (const filter of filters) {
      const condition = await attemptLater(this.#errors, filter, async () => {
        if (this.#isNew) assertNoBits(filter.text)
        const expression = await compileExpression(filter.tree, {
          ...this.#compiler(),
          columns: this.#columns,
          failedCast: 'null',
        })
        this.#addReads(expression.reads)
        const type = this.#isTyped ? await typeOf(this.#connection, expression, this.#columns, filter.tree) : 'BOOLEAN'
        if (type === 'BOOLEAN') return expression.sql
        const message = `must be a BOOLEAN expression, such as amount > 5, but is of type ${type}`
        throw new ConditionError(message, 'wrong_type').of({ at: beginOf(filter.tree) })
      })
      if (condition !== undefined) conditions.push(condition)
    }
    return conditions
  }

  patternBound(columns: readonly CompiledColumn[]): PatternBound | undefined {
    const { bytesMax, slowest } = this.budget.patterns
    if (bytesMax === undefined) return undefined
    const isTextRead = (index: number) => {
      const { source, type } = columns[index] ?? {}
      return source?.from !== 'columns' && type !== undefined && columnSize(type).values > 0
    }
    return { bytesMax, slowest, reads: [...this.reads].filter(isTextRead) }
  }

  #compiler(): Compiler {
    const { budget, secrets } = this
    return { connection: this.#connection, budget, secrets, isTyped: this.#isTyped, isNew: this.#isNew }
  }

  #addReads(columns: readonly number[]): void {
    for (const column of columns) this.reads.add(column)
  }

  async #values(): Promise<ReadonlyMap<number, Computed>> {
    const values = new Map<number, Computed>()
    const report = (index: number, error: ConditionError) => {
      const { source } = must(this.#read[index], 'a column')
      const text = source?.from === 'columns' ? source.text : ''
      this.#errors.push(problemAt({ path: `columns.${index}.value`, text }, error))
    }
    for (const index of orderOfComputed(this.#read, report)) {
      const column = must(this.#read[index], 'a column')
      const { source, type } = column
      if (source?.from !== 'columns') continue
      const levels = this.#read.map((_, at) => values.get(at)?.level ?? 0)
      const compiled = await attemptLater(this.#errors, { path: `columns.${index}.value`, text: source.text }, () => {
        if (this.#isNew) assertNoBits(source.text)
        return compileValue(column, source.tree, this.#columns, levels, this.#compiler())
      })
      if (compiled === undefined) continue
      this.#addReads(compiled.computed.reads)
      values.set(index, compiled.computed)
      this.#columns[index] = { ...must(this.#columns[index], 'a column'), size: sizeOfColumn(type, compiled.size) }
    }
    return values
  }
}

/** Throws for a constant that the parser reads as another one. */
function assertNoBits(text: string): void {
  const found = findBits(text)
  if (found === undefined) return
  const message = `${found.text} is the text '${found.text.replaceAll("'", '')}' here, and not bytes: write bytes as a cast, such as CAST('\\x41' AS BLOB)`
  throw new ConditionError(message, 'not_allowed', found.at)
}

/** Only text is as long as the expression makes it. */
function sizeOfColumn(type: ColumnType | undefined, size: TextSize): TextSize | undefined {
  return type !== undefined && columnSize(type).values > 0 ? size : undefined
}

async function attemptLater<T>(errors: FieldError[], place: Place, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ConditionError)) throw error
    errors.push(problemAt(place, error))
    return undefined
  }
}

function problemAt({ path, text }: Place, { message, code, at }: ConditionError): FieldError {
  return { path, message, code, ...(at !== undefined && { excerpt: excerptOf(text, at) }) }
}

/** Orders problems as the definition does. */
function placeOf({ path }: FieldError): number {
  const [part = '', index] = path.split('.')
  return (
    Number(index ?? 0) +
    ['columns', 'filters', 'dedupe_by', 'dedupe_within', 'partition_by', 'sort_by'].indexOf(part) * definitionLimits.columnsMax
  )
}

function attempt<T>(errors: FieldError[], path: string, kind: new (message: string) => Error, parse: () => T): T | undefined {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof kind)) throw error
    errors.push({ path, message: error.message })
    return undefined
  }
}

function invalid(errors: readonly FieldError[], errorsOmitted = 0): AppError {
  return new AppError('validation_error', 'the view definition cannot be compiled', { errors, errorsOmitted })
}
