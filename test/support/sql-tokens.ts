/**
 * Reads the SQL that the view compiler makes, by a list of what it may have. It shares nothing with the compiler: a name, an operator or a quote
 * that is not listed here came from somewhere else.
 */

/** Functions of expressions, and those that read the language's own functions, casts and checks. */
const functions = new Set([
  ...['abs', 'ceil', 'ceiling', 'floor', 'round', 'trunc', 'sign', 'isnan', 'isinf', 'isfinite', 'greatest', 'least'],
  ...['lower', 'upper', 'trim', 'ltrim', 'rtrim', 'left', 'right', 'substring', 'substr', 'concat', 'replace', 'sha256'],
  ...['length', 'strlen', 'len', 'array_length', 'strpos', 'instr', 'starts_with', 'ends_with', 'prefix', 'suffix'],
  ...['contains', 'list_contains', 'array_contains', 'list_has', 'list_value', 'list_transform', 'list_min', 'list_max'],
  ...['regexp_matches', 'regexp_full_match', 'regexp_extract', 'regexp_extract_all', 'regexp_replace', 'string_split'],
  ...['date_part', 'year', 'quarter', 'month', 'week', 'day', 'dayofweek', 'isodow', 'dayofyear', 'hour', 'minute', 'second'],
  ...['epoch', 'epoch_ms', 'epoch_us', 'date_trunc', 'timezone', 'make_timestamp', 'make_timestamptz', 'try_strptime'],
  ...['coalesce', 'nullif', 'typeof', 'flatten', 'format', 'strftime', 'to_json', 'json_keys', 'json_extract_string'],
  ...['encode', 'unhex', 'getvariable', 'url_decode', 'cast', 'try_cast', 'try', 'decimal'],
])

const words = new Set([
  ...['as', 'lambda', 'and', 'or', 'not', 'in', 'is', 'null', 'true', 'false', 'between', 'like', 'distinct', 'from', 'case'],
  ...['when', 'then', 'else', 'end', 'boolean', 'tinyint', 'smallint', 'integer', 'bigint', 'hugeint', 'utinyint', 'usmallint'],
  ...['uinteger', 'ubigint', 'uhugeint', 'float', 'double', 'decimal', 'varchar', 'date', 'time', 'timestamp', 'timestamptz'],
  ...['uuid', 'json', 'blob'],
])

/** Values of columns, and parameters of lambdas. */
const value = /^(?:value_\d+|item_\d+|x|found)$/

/** Functions that only whole statements have. */
const statementFunctions = new Set([
  ...['json_serialize_sql', 'json_extract', 'json_valid', 'json_type', 'json_object', 'struct_pack', 'struct_extract', 'unnest'],
  ...['list_sum', 'generate_subscripts', 'list_position', 'list_resize', 'range', 'max', 'pg_timezone_names', 'given'],
])
const statementWords = new Set([
  ...[
    'select',
    'values',
    'filter',
    'order',
    'by',
    'where',
    'exclude',
    'replace',
    'join',
    'on',
    'records',
    'sources',
    'given',
    'payload',
  ],
  ...['received_at', 'source', 'rowid', 'readable', 'attributes', 'topic', 'client_id', 'protocol', 'number', 'text', 'name'],
  ...['element', 'elements', 'item', 'items', 'each', 'nr', 'part', 'parts', 'parent', 'parents', 'parent_at', 'parents_at'],
  ...['inner_at', 'inners_at', 'item_index', 'item_json', 'item_path', 'item_count', 'parent_count', 'parent_bytes'],
  ...['parent_made_bytes', 'record_bytes', 'array_type', 'expand_problem', 'has_items', 'misfit', 'v'],
  ...['parents_of_items', 'parent_texts_of_item'],
])
const statementName =
  /^(?:tried_value_\d+|condition_0|verdict_0|pattern_bytes_0|(?:more_)?cast_nulls_0|failed_0|(?:parent_|item_)?(?:texts|jsons|list_\d+|elements_\d+|envelope_\d+))$/

const token =
  /\s+|'(?:[^']|'')*'|"(?:[^"]|"")*"|\d+(?:\.\d+)?(?:e[+-]?\d+)?|[a-z_]\w*|<=|>=|<>|\|\||\/\/|:=|[-+*/%<>=()[\],.:]/giy

const closing: Readonly<Record<string, string>> = { '(': ')', '[': ']' }

/** Returns what is in the SQL of an expression, or of a whole statement, that the compiler does not make; undefined if there is nothing. */
export function foreignPart(sql: string, kind: 'expression' | 'statement'): string | undefined {
  const open: string[] = []
  let before = ''
  token.lastIndex = 0
  while (token.lastIndex < sql.length) {
    const at = token.lastIndex
    const text = token.exec(sql)?.[0]
    if (text === undefined) return `unknown text ${excerpt(sql, at)}`
    const problem =
      adjacencyProblem(before, text) ??
      (/^[a-z_]/i.test(text) ? wordProblem(text, sql[token.lastIndex], kind) : undefined) ??
      (text.startsWith('"') && kind === 'expression' ? 'quoted name' : undefined) ??
      bracketProblem(text, open)
    if (problem !== undefined) return `${problem} ${excerpt(sql, at)}`
    before = text
  }
  return open.length === 0 ? undefined : 'open bracket at the end'
}

/** Two tokens that mean something else together: `--`, `E'…'`, `'…'name`. */
function adjacencyProblem(before: string, text: string): string | undefined {
  const isQuote = (each: string) => each.startsWith("'") || each.startsWith('"')
  const isWord = (each: string) => /^\w/.test(each)
  if ((isQuote(text) && (isWord(before) || isQuote(before))) || (isWord(text) && (isQuote(before) || isWord(before))))
    return 'text without a gap'
  return ['--', '/*', '*/', '::'].includes(before.slice(-1) + text.slice(0, 1)) ? 'comment or cast' : undefined
}

function wordProblem(text: string, next: string | undefined, kind: 'expression' | 'statement'): string | undefined {
  const word = text.toLowerCase()
  const isStatement = kind === 'statement'
  if (next === '(') return functions.has(word) || (isStatement && statementFunctions.has(word)) ? undefined : 'unknown function'
  if (words.has(word) || value.test(text)) return undefined
  return isStatement && (statementWords.has(word) || statementName.test(text)) ? undefined : 'unknown name'
}

function bracketProblem(text: string, open: string[]): string | undefined {
  const closes = closing[text]
  if (closes !== undefined) open.push(closes)
  else if ((text === ')' || text === ']') && open.pop() !== text) return 'bracket that does not match'
  return undefined
}

function excerpt(sql: string, at: number): string {
  return JSON.stringify(sql.slice(Math.max(0, at - 40), at + 60))
}
