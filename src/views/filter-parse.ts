import { Buffer } from 'node:buffer'
import type { Connection } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { reservingEngines } from '#model/reserved-words.ts'
import {
  beforeExpression,
  beginOf,
  ConditionError,
  checkCharacters,
  listOf,
  type Node,
  nestedTooDeep,
  objectOf,
  placeOf,
  quoted,
} from './condition.ts'
import { findDollar, findSemicolon, withQuotedFields } from './envelope-fields.ts'

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
  const json = String(rows[0]?.[0])
  const parsed = readTree(json)
  const found = parsed['error'] === true || json.includes('"class":"PARAMETER"') ? findDollar(text) : undefined
  if (found !== undefined) throw problemOf(found)
  if (parsed['error'] === true) throw syntaxError(parsed, text)
  return soleExpression(parsed, text)
}

function problemOf({ text, at }: { readonly text: string; readonly at: number }): ConditionError {
  if (!/^\$(?:[.[]|(?:item|parent)(?!\w)|$)/.test(text))
    return new ConditionError('a parameter is not allowed', 'not_allowed', at)
  const message = `${quoted(text)} is a path, and an expression names columns: add a column with this path, hidden if it is not to be written, and name it here`
  return new ConditionError(message, 'not_allowed', at)
}

function syntaxError(parsed: Node, text: string): ConditionError {
  const reason = String(parsed['error_message'])
  if (/Only SELECT|without selection list/.test(reason))
    return new ConditionError(oneExpression, 'syntax', findSemicolon(text)?.at)
  if (/expression depth/i.test(reason)) return new ConditionError(nestedTooDeep, 'too_expensive')
  // The words that DuckDB's parser has for escapes are those of unfinished code.
  if (/NOT IMPLEMENTED|surrogate|unicode/i.test(reason))
    return new ConditionError('has an escape in a text that is no character: write the character itself', 'syntax')
  const position = parsed['position'] === undefined ? undefined : Number(parsed['position']) - beforeExpression.length
  return new ConditionError(`cannot be parsed: ${reason}${hintAt(text, position)}`, 'syntax', position)
}

/** Words that expressions have without being names. */
const ownWords = new Set(
  'and or not is null in between like ilike similar to case when then else end cast try_cast as true false distinct from'.split(
    ' ',
  ),
)

/** Returns a hint if a name that must be quoted is at the place, or right before it. */
function hintAt(text: string, at = Number.POSITIVE_INFINITY): string {
  const parsed = Buffer.from(withQuotedFields(text))
  const [before = ''] = /\w+(?=\W*$)/.exec(parsed.subarray(0, Math.min(at, parsed.length)).toString()) ?? []
  const [here = ''] = /^\w+/.exec(parsed.subarray(Math.min(at, parsed.length)).toString()) ?? []
  const name = [here, before].find((word) => !ownWords.has(word.toLowerCase()) && reservingEngines(word).includes('DuckDB'))
  return name === undefined ? '' : ` (put a column whose name is an SQL keyword in double quotes: "${name}")`
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
function soleExpression(parsed: Node, text: string): Node {
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
    throw new ConditionError(oneExpression, 'syntax', others.length > 0 ? findSemicolon(text)?.at : beginOf(more[0]))
  }
  if (objectOf(expression)['alias'] !== '')
    throw new ConditionError('must not give the expression a name').of({ at: placeOf(expression) })
  return objectOf(expression)
}
