import { assert } from '#lib/assert.ts'

/**
 * The one way by which text that others wrote gets into SQL.
 *
 * Law: what is quoted here is one token to DuckDB, whatever it holds. DuckDB takes a NUL for the end of a statement, so callers
 * refuse it before.
 */
export function quoteIdentifier(name: string): string {
  return quote(name, '"')
}

export function quoteLiteral(text: string): string {
  return quote(text, "'")
}

function quote(text: string, mark: '"' | "'"): string {
  assert(!text.includes('\0') && text.isWellFormed(), 'text for SQL must be well-formed and without NUL')
  return mark + text.replaceAll(mark, mark + mark) + mark
}
