/**
 * Compiles a view definition: checks everything, parses paths and types, turns filters into conditions.
 *
 * Owns: what a definition may contain. Does not own: the statement (extraction.ts), the rows (records/).
 * Law: definitions are hostile. Every problem is reported with its path in an AppError. Every definition that compiles here runs in delivery.
 */
import { type Connection, Database } from '#duckdb/database.ts'
import { quoteIdentifier } from '#duckdb/quote.ts'
import { AppError, type FieldError } from '#errors.ts'
import { MiB } from '#lib/bytes.ts'
import { Definition, type ListForm } from '#model/definition.ts'
import { parseFields } from '#model/field-errors.ts'
import { definitionLimits } from '#model/limits.ts'
import { ColumnTypeError, descriptorOf, parseType, printType, storedType } from '#model/types/column-type.ts'
import { formProblem } from '#model/types/file-form.ts'
import type { CompiledColumn, CompiledView } from './compiled-view.ts'
import { type Condition, ConditionError } from './condition.ts'
import { ConditionBudget } from './condition-budget.ts'
import { extractionSql } from './extraction.ts'
import { parseCondition } from './filter.ts'
import { type Path, PathError, parsePath } from './json-path.ts'
import { typeProblem } from './type-problem.ts'

const COMPILER_MEMORY_BYTES = 64 * MiB

let compiler: Promise<Database> | undefined
const compiledByDefinition = new WeakMap<Definition, Promise<CompiledView>>()

/** Throws AppError validation_error with every problem in `errors`. Caches the result by definition object. */
export function compileView(definition: Definition): Promise<CompiledView> {
  const cached = compiledByDefinition.get(definition)
  if (cached !== undefined) return cached
  const compiled = compile(definition)
  if (typeof definition !== 'object' || definition === null) return compiled
  compiledByDefinition.set(definition, compiled)
  compiled.catch(() => compiledByDefinition.delete(definition))
  return compiled
}

async function compile(input: unknown): Promise<CompiledView> {
  const parsed = parseFields(Definition, input)
  if (parsed.errors !== undefined) throw invalid(parsed.errors, parsed.omitted)
  const definition = parsed.value
  const errors: FieldError[] = []
  const columns = definition.columns.map((column, index): CompiledColumn | undefined => {
    const at = `columns.${index}`
    const type = attempt(errors, `${at}.type`, ColumnTypeError, () => parseType(column.type))
    const path = attempt(errors, `${at}.path`, PathError, () => inForm(parsePath(column.path), definition.lists))
    if (type === undefined || path === undefined) return undefined
    const form = formProblem(type, column.parquet)
    if (form !== undefined) errors.push({ path: `${at}.parquet`, message: form })
    if (path.from === 'record' && path.hasEach && type.depth === 0) {
      errors.push({ path: `${at}.type`, message: 'must be a list such as VARCHAR[], because the path has [*]' })
    }
    if (path.from === 'envelope' && (type.depth > 0 || descriptorOf(type.scalar).readsJson)) {
      errors.push({
        path: `${at}.type`,
        message: 'must be a scalar such as VARCHAR or TIMESTAMP, because the path names a field of the envelope',
      })
    }
    const { name, required = false, cast_failures: castFailures = 'null', parquet } = column
    return { name, path, type, required, castFailures, parquet }
  })
  const valid = columns.filter((column) => column !== undefined)
  const budget = new ConditionBudget()
  const conditions = await readConditions(definition, errors.length === 0 ? valid : undefined, budget, errors)
  if (errors.length > 0) throw invalid(errors)
  const view = {
    columns: valid,
    condition:
      conditions.length === 0
        ? undefined
        : (column: (index: number) => string) => conditions.map((each) => each(column)).join(' AND '),
  }
  return { ...view, patterns: budget.patterns, sql: extractionSql([view], { guarded: true, records: 'records' }).sql }
}

/** Versions that are older than the choice have packed lists. */
function inForm(path: Path, lists: ListForm = 'packed'): Path {
  return path.from === 'record' && path.hasEach && lists === 'aligned' ? { ...path, isAligned: true } : path
}

async function readConditions(
  { columns, filters = [] }: Definition,
  valid: readonly CompiledColumn[] | undefined,
  budget: ConditionBudget,
  errors: FieldError[],
): Promise<readonly Condition[]> {
  if (filters.length === 0) return []
  compiler ??= Database.open({ directories: [], memoryBytes: COMPILER_MEMORY_BYTES })
  const connection = await (await compiler).connect()
  const conditions: Condition[] = []
  const named = columns.map(({ name }, index) => ({ name, type: valid?.[index]?.type }))
  try {
    for (const [index, { condition: text }] of filters.entries()) {
      try {
        const condition = await parseCondition(connection, text, named, budget, definitionLimits.compileTimeoutMs)
        if (valid !== undefined) await assertTypechecks(connection, condition, valid)
        conditions.push(condition)
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        if (!(error instanceof ConditionError)) throw error
        errors.push({ path: `filters.${index}.condition`, message })
      }
    }
  } finally {
    connection.close()
  }
  return conditions
}

/** Checks the types with DuckDB, by evaluating the condition on one row of NULLs. */
async function assertTypechecks(connection: Connection, condition: Condition, columns: readonly CompiledColumn[]): Promise<void> {
  const nulls = columns.map(({ name, type }) => `CAST(NULL AS ${printType(storedType(type))}) AS ${quoteIdentifier(name)}`)
  const sql = condition((index) => quoteIdentifier(columns[index]?.name ?? ''))
  const select = `SELECT typeof(${sql}) FROM (SELECT ${nulls.join(', ')})`
  const { rows } = await connection
    .query(select, { timeoutMs: definitionLimits.compileTimeoutMs })
    .catch((error: unknown): never => {
      const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
      throw new ConditionError(typeProblem(line))
    })
  const type = rows[0]?.[0]
  if (type !== 'BOOLEAN') throw new ConditionError(`must be a BOOLEAN expression, such as amount > 5, but is of type ${type}`)
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
