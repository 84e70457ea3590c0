/**
 * Fields of the envelope in an expression, such as `$$.topic`.
 *
 * DuckDB reads `$$` as the begin of a text, so they are put in quotes before it parses the expression: there they are names of columns.
 */
import { Buffer } from 'node:buffer'
import { quoted } from './condition.ts'
import { type Path, PathError, parsePath } from './json-path.ts'

const notInComment = String.raw`(?:(?!\*/|/\*)[\s\S])`
/** Comments can be nested. */
const comment = [1, 2, 3].reduce((inner) => String.raw`/\*(?:${notInComment}|${inner})*\*/`, String.raw`/\*${notInComment}*\*/`)
const field = String.raw`\$\$\.[a-z_]+(?:\.(?:[\w-]+|"[^"]*")|\[\s*(?:'[^']*'|"[^"]*")\s*\])?`

/** A text, a quoted name, or a comment, which may contain anything; or a field. */
const parts = new RegExp(
  String.raw`(?<!\w)E'(?:[^'\\]|\\[\s\S]|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|${comment}|(${field})`,
  'gi',
)

/** A path where an expression needs the name of a column, or a parameter. */
const dollar = String.raw`(?<![\w$])\$(?:item|parent)?(?:(?:\.[\w*]+|\.?"[^"]*"|\[[^\]]*\])+|(?![\w$]))|\$\w+|\?`
const partsAndDollars = new RegExp(`${parts.source}|(${dollar})`, 'gi')
const partsAndSemicolons = new RegExp(`${parts.source}|(;)`, 'gi')
const partsAndBits = new RegExp(String.raw`(?<!\w)([xb]'[^']*')|${parts.source}`, 'gi')

type Found = {
  readonly text: string
  /** A byte of the text with quoted fields. */
  readonly at: number
}

/** Returns the first path such as `$.a` or `$item.a`, or parameter such as `$1`. */
export function findDollar(expression: string): Found | undefined {
  return findOf(expression, partsAndDollars, 2)
}

/** Returns the first constant such as `x'41'`, which DuckDB's parser reads as the text `x41`. */
export function findBits(expression: string): Found | undefined {
  return findOf(expression, partsAndBits, 1)
}

/** Returns the first semicolon between statements. */
export function findSemicolon(expression: string): Found | undefined {
  return findOf(expression, partsAndSemicolons, 2)
}

function findOf(expression: string, pattern: RegExp, group: number): Found | undefined {
  for (const match of expression.matchAll(pattern)) {
    const text = match[group]
    if (text === undefined) continue
    return { text, at: Buffer.byteLength(withQuotedFields(expression.slice(0, match.index))) }
  }
  return undefined
}

export function withQuotedFields(expression: string): string {
  return expression.replace(parts, (whole, field: string | undefined) =>
    field === undefined ? whole : `"${field.replaceAll('"', '""')}"`,
  )
}

/** Returns the index in the expression for one in the text with quoted fields. */
export function originalIndex(expression: string, quotedIndex: number): number {
  let added = 0
  for (const { 0: whole, 1: field, index } of expression.matchAll(parts)) {
    if (field === undefined) continue
    const start = index + added
    if (quotedIndex < start) break
    const quotes = 2 + (field.split('"').length - 1)
    if (quotedIndex < start + whole.length + quotes) return index
    added += quotes
  }
  return quotedIndex - added
}

type EnvelopePath = Path & { readonly from: 'envelope' | 'item_index' }

/** Returns the field that a name in an expression stands for; undefined if it is none. */
export function fieldOf(name: string): EnvelopePath | undefined {
  const found = problemWithField(name) === undefined && name.startsWith('$$.') ? parsePath(name) : undefined
  return found?.from === 'record' ? undefined : found
}

/** Returns why a name that is meant as a field is none. */
export function problemWithField(name: string): string | undefined {
  try {
    if (name.startsWith('$$')) parsePath(name)
    return undefined
  } catch (error) {
    if (!(error instanceof PathError)) throw error
    return `${quoted(name)} is not a field of the envelope: it ${error.message}`
  }
}
