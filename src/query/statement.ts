/**
 * Decides which statements run.
 *
 * Owns: that a text is one SELECT over named tables, and which tables it names. Does not own: whose tables they are, and what DuckDB itself
 * denies (duckdb/database.ts): no file outside of the directory, no network, no settings.
 * Law: a statement reads files only through the tables that it names. Whatever is not known to be harmless is refused.
 */
import type { Connection } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { queryLimits } from '#model/limits.ts'
import { type Condition, conditionsOf, constantsMax } from './conditions.ts'
import { placeByte, type StatementProblem } from './error-place.ts'
import type { TableName } from './query-protocol.ts'

/** The message is for the caller. */
export class StatementRefused extends Error {
  override readonly name = 'StatementRefused'
  readonly problem: StatementProblem

  constructor(problem: string | StatementProblem) {
    const known = typeof problem === 'string' ? { message: problem } : problem
    super(known.message)
    this.problem = known
  }
}

const inspectTimeoutMs = 5_000

/** Parts of FROM that read nothing but named tables and what the statement itself has. */
const tableParts: ReadonlySet<unknown> = new Set([
  'BASE_TABLE',
  'SUBQUERY',
  'JOIN',
  'EXPRESSION_LIST',
  'EMPTY',
  'EMPTY_FROM',
  'PIVOT',
  'TABLE_FUNCTION',
])

/** Functions in FROM. Others read files, settings, or run text as SQL. */
const tableFunctions: ReadonlySet<string> = new Set(['range', 'generate_series', 'unnest', 'json_each', 'json_tree'])

/** Functions that tell something about the process. */
const refusedFunctions: ReadonlySet<string> = new Set(['current_setting', 'getenv', 'write_log', 'query', 'query_table'])

type Node = { readonly [key: string]: unknown }

/** Returns the tables that a statement names, each once. Throws StatementRefused if it may not run. */
export async function inspectStatement(connection: Connection, sql: string): Promise<readonly TableName[]> {
  const { rows } = await connection.query(`SELECT json_serialize_sql(${quoteLiteral(sql)})`, { timeoutMs: inspectTimeoutMs })
  const parsed = parseTree(String(rows[0]?.[0]))
  if (parsed['error'] === true) throw new StatementRefused(explain(parsed, sql))
  const statements = parsed['statements']
  if (!Array.isArray(statements) || statements.length !== 1) throw new StatementRefused('sql must be one SELECT statement')
  const found = new Found()
  found.visit(statements[0])
  return found.tables()
}

/** Results of a walk through the tree of a statement. */
class Found {
  readonly #tables = new Map<string, Name>()
  /** How often a statement reads each table, and its conditions where it is the only one of a SELECT. */
  readonly #reads = new Map<string, number>()
  readonly #conditions = new Map<string, (readonly Condition[])[]>()
  /** Common table expressions, anywhere in the statement. */
  readonly #expressions = new Set<string>()

  /** Visits a value and all values in it. Throws StatementRefused. */
  visit(value: unknown): void {
    // A loop: the nesting of hostile text is deeper than the stack.
    const waiting: unknown[] = [value]
    while (waiting.length > 0) {
      const next = waiting.pop()
      if (typeof next !== 'object' || next === null) continue
      if (!Array.isArray(next)) this.#check(next as Node)
      waiting.push(...Object.values(next))
    }
  }

  tables(): readonly TableName[] {
    if (this.#tables.size > queryLimits.tablesMax)
      throw new StatementRefused(`a statement may name at most ${queryLimits.tablesMax} tables`)
    return [...this.#tables].map(([key, name]) => {
      const conditions = this.#conditions.get(key) ?? []
      const constants = conditions.flat().reduce((sum, condition) => sum + condition.constants.length, 0)
      const isKnown = conditions.length === this.#reads.get(key) && constants <= constantsMax
      const isOptional = name.schema === '' && this.#expressions.has(name.table.toLowerCase())
      return { ...name, isOptional, ...(isKnown && { conditions }) }
    })
  }

  #check(node: Node): void {
    const { type } = node
    if (type === 'SELECT_NODE') this.#addConditions(node)
    if ('function_name' in node) checkFunction(String(node['function_name']))
    if ('cte_map' in node) for (const key of keysOf(node['cte_map'])) this.#expressions.add(key.toLowerCase())
    // Expressions have a class. Of the rest, only a part of FROM has both of these.
    if ('class' in node || !('alias' in node && 'sample' in node)) return
    if (!tableParts.has(type)) throw new StatementRefused(refusedPart(type))
    if (type === 'TABLE_FUNCTION') checkTableFunction(node['function'])
    if (type === 'BASE_TABLE') this.#add(node)
  }

  #addConditions({ from_table, where_clause }: Node): void {
    const from = (from_table ?? {}) as Node
    if (from['type'] !== 'BASE_TABLE') return
    const name = nameOf(from)
    // A table with an alias has no other name there.
    const names = [String(from['alias'] || name.table).toLowerCase()]
    const renamed = from['column_name_alias']
    const conditions = Array.isArray(renamed) && renamed.length > 0 ? [] : conditionsOf(where_clause ?? null, names)
    this.#conditions.set(keyOf(name), [...(this.#conditions.get(keyOf(name)) ?? []), conditions])
  }

  #add(node: Node): void {
    const name = nameOf(node)
    const key = keyOf(name)
    this.#tables.set(key, name)
    this.#reads.set(key, (this.#reads.get(key) ?? 0) + 1)
  }
}

type Name = Pick<TableName, 'schema' | 'table'>

function nameOf({ catalog_name, schema_name, table_name, at_clause }: Node): Name {
  const [catalog, schema = '', table = ''] = [catalog_name, schema_name, table_name].map((part) => String(part ?? ''))
  if (catalog !== '' || (at_clause ?? null) !== null)
    throw new StatementRefused(
      `${[catalog, schema, table].filter(Boolean).join('.')}: name a table by one or two parts, as in orders or orders.v2`,
    )
  // DuckDB's own schema for names of one part.
  return { schema: schema.toLowerCase() === 'main' ? '' : schema, table }
}

function keyOf({ schema, table }: Name): string {
  return JSON.stringify([schema, table]).toLowerCase()
}

function checkFunction(name: string): void {
  if (refusedFunctions.has(name.toLowerCase())) throw new StatementRefused(`the function ${name} is not available`)
}

function checkTableFunction(called: unknown): void {
  const name = String((called as Node | null)?.['function_name'] ?? '')
  if (tableFunctions.has(name.toLowerCase())) return
  throw new StatementRefused(`the table function ${name} is not available: name a view or raw."<endpoint>" instead of a file`)
}

function refusedPart(type: unknown): string {
  return type === 'SHOW_REF'
    ? 'DESCRIBE, SHOW and SUMMARIZE are not available: SELECT * FROM <table> LIMIT 0 returns the columns'
    : 'a part of FROM is not available: use tables, subqueries, joins and VALUES'
}

function keysOf(map: unknown): readonly string[] {
  const entries = (map as Node | null)?.['map']
  return Array.isArray(entries) ? entries.map((entry: Node) => String(entry['key'])) : []
}

function parseTree(json: string): Node {
  try {
    return JSON.parse(json) as Node
  } catch {
    // DuckDB writes a constant such as 1e400 as Infinity, which is not valid JSON.
    throw new StatementRefused('a number in the statement is too large')
  }
}

function explain({ error_message, position }: Node, sql: string): StatementProblem {
  const message = String(error_message)
  if (message.startsWith('Only SELECT'))
    return { message: 'sql must be one SELECT statement; a PIVOT needs its values listed: PIVOT … ON column IN (…)' }
  return position === undefined ? { message } : placeByte(message, sql, Number(position))
}
