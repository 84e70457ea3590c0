import type { Connection } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { beforeExpression, ConditionError, checkCharacters, listOf, type Node, objectOf } from './condition.ts'
import { withQuotedFields } from './envelope-fields.ts'

const oneExpression = "must be one expression over the view's columns, such as amount > 5, and nothing else"

/** Parses one expression with DuckDB and returns its tree. Fields of the envelope are in it as columns, by their path. Throws ConditionError for anything else. */
export async function parseExpression(connection: Connection, text: string, timeoutMs: number): Promise<Node> {
  checkCharacters(text)
  if (text.trim() === '') throw new ConditionError(oneExpression, 'syntax')
  const { rows } = await connection.query(
    `SELECT json_serialize_sql(${quoteLiteral(beforeExpression + withQuotedFields(text))})`,
    {
      timeoutMs,
    },
  )
  const parsed = readTree(String(rows[0]?.[0]))
  if (parsed['error'] === true) {
    if (String(parsed['error_message']).includes('Only SELECT')) throw new ConditionError(oneExpression, 'syntax')
    const hint = 'put a column whose name is an SQL keyword in double quotes'
    const at = parsed['position'] === undefined ? undefined : Number(parsed['position']) - beforeExpression.length
    throw new ConditionError(`cannot be parsed: ${parsed['error_message']} (${hint})`, 'syntax', at)
  }
  return soleExpression(parsed)
}

function readTree(json: string): Node {
  try {
    return JSON.parse(json, keepExact) as Node
  } catch {
    // DuckDB writes a constant such as 1e400 as Infinity, which is not valid JSON.
    throw new ConditionError('a number is too large')
  }
}

/** Returns a bigint for a whole number that JavaScript would round. */
function keepExact(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isRounded && /^-?\d+$/.test(context?.source ?? '') ? BigInt(context?.source ?? '') : value
}

/** Returns the expression if the statement is `SELECT <expression>` and nothing else. */
function soleExpression(parsed: Node): Node {
  const [statement, ...others] = listOf(parsed['statements'])
  const node = objectOf(objectOf(statement)['node'])
  const [expression, ...more] = listOf(node['select_list'] ?? [])
  const isBare =
    node['type'] === 'SELECT_NODE' &&
    objectOf(node['from_table'])['type'] === 'EMPTY' &&
    ['where_clause', 'having', 'qualify', 'sample'].every((part) => (node[part] ?? null) === null) &&
    ['modifiers', 'group_expressions', 'group_sets'].every((part) => listOf(node[part] ?? []).length === 0) &&
    listOf(objectOf(node['cte_map'])['map'] ?? []).length === 0 &&
    node['aggregate_handling'] === 'STANDARD_HANDLING'
  if (others.length > 0 || more.length > 0 || !isBare || expression === undefined) {
    throw new ConditionError(oneExpression, 'syntax')
  }
  if (objectOf(expression)['alias'] !== '') throw new ConditionError('must not give the expression a name')
  return objectOf(expression)
}
