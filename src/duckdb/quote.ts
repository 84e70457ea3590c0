import { assert } from '#lib/assert.ts'

/**
 * Quotes untrusted text for SQL. Untrusted text must not reach a statement in any other way.
 *
 * Law: quoted text is a single token for DuckDB, whatever it contains. DuckDB ends a statement at NUL, so callers must reject NUL
 * first.
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
