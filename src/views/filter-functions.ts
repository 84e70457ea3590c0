/**
 * The functions that a condition may call: pure functions of one row that take time and memory linear in their arguments and their result.
 * `concat`, `||` and `replace` make longer texts; condition-budget.ts bounds what calls return. Functions that repeat or pad text are missing.
 */
import { quoteLiteral } from '#duckdb/quote.ts'

const functionsByResult = {
  text: ['lower', 'upper', 'trim', 'ltrim', 'rtrim', 'left', 'right', 'substring', 'substr', 'concat', 'replace'],
  number: [
    ...['length', 'strlen', 'len', 'array_length', 'position', 'strpos', 'instr'],
    ...['abs', 'ceil', 'ceiling', 'floor', 'round', 'trunc', 'sign'],
  ],
  boolean: ['starts_with', 'ends_with', 'prefix', 'suffix', 'isnan', 'isinf', 'isfinite'],
  /** A number from a time, which is the last argument. */
  timePart: [
    ...['date_part', 'year', 'quarter', 'month', 'week', 'day', 'dayofweek', 'isodow', 'dayofyear'],
    ...['hour', 'minute', 'second', 'epoch', 'epoch_ms'],
  ],
  /** A time from a time, which is the last argument. */
  time: ['date_trunc'],
  /** One of the arguments. */
  argument: ['greatest', 'least'],
  /** The first argument, after a comparison with the second. */
  first: ['nullif'],
  list: ['list_value'],
  /** Whether the first argument, a list, has the second. With texts, `contains` looks for a part. */
  membership: ['list_contains', 'array_contains', 'list_has', 'contains'],
} as const satisfies Readonly<Record<string, readonly string[]>>

export type FunctionResult = keyof typeof functionsByResult

/** The functions, and what they return. */
export const allowedFunctions: ReadonlyMap<string, FunctionResult> = new Map(
  (Object.keys(functionsByResult) as FunctionResult[]).flatMap((result) =>
    functionsByResult[result].map((name) => [name, result] as const),
  ),
)

/** The functions that look for the second argument in the first. */
export const searchFunctions: ReadonlySet<string> = new Set(['position', 'strpos', 'instr', 'contains', 'replace'])

/** DuckDB's functions for the present time and random values. Some are called without parentheses. */
const changingFunctions: ReadonlySet<string> = new Set([
  ...['now', 'today', 'current_timestamp', 'get_current_timestamp', 'transaction_timestamp', 'current_date', 'current_time'],
  ...['get_current_time', 'localtime', 'localtimestamp', 'current_localtime', 'current_localtimestamp', 'random', 'uuid'],
])

/** Returns the reason why a function is not allowed, if its result changes from run to run. */
export function reasonIfChanging(name: string): string | undefined {
  return changingFunctions.has(name.toLowerCase())
    ? `${JSON.stringify(name)} is not allowed, because a view gives the same result whenever it runs: use a constant, or a column with a time of the record`
    : undefined
}

export type Pattern = {
  /** The operator or function as the user writes it. */
  readonly written: string
  readonly syntax: 'like' | 'regex-part' | 'regex-whole'
  readonly negated: boolean
  readonly ignoresCase: boolean
  readonly takesEscape: boolean
}

const like = { written: 'LIKE', syntax: 'like', negated: false, ignoresCase: false, takesEscape: false } as const
const regex = { negated: false, ignoresCase: false, takesEscape: false } as const

/** LIKE, ILIKE, SIMILAR TO and ~ under the names that DuckDB's parser gives them. */
export const patternFunctions: Readonly<Record<string, Pattern>> = {
  '~~': like,
  '!~~': { ...like, written: 'NOT LIKE', negated: true },
  '~~*': { ...like, written: 'ILIKE', ignoresCase: true },
  '!~~*': { ...like, written: 'NOT ILIKE', negated: true, ignoresCase: true },
  like_escape: { ...like, takesEscape: true },
  not_like_escape: { ...like, written: 'NOT LIKE', negated: true, takesEscape: true },
  ilike_escape: { ...like, written: 'ILIKE', ignoresCase: true, takesEscape: true },
  not_ilike_escape: { ...like, written: 'NOT ILIKE', negated: true, ignoresCase: true, takesEscape: true },
  regexp_matches: { ...regex, written: '"regexp_matches"', syntax: 'regex-part' },
  regexp_full_match: { ...regex, written: 'SIMILAR TO, ~ or "regexp_full_match"', syntax: 'regex-whole' },
}

/** How a pattern is matched: as a regular expression, or by DuckDB's LIKE. */
export type Matcher = { readonly regex: string; readonly options?: string } | { readonly like: string }

/** Returns a matcher that takes linear time. RE2 does; DuckDB's LIKE does so only for patterns without _. */
export function matcherOf({ syntax, ignoresCase }: Pattern, pattern: string, escapeWith?: string): Matcher {
  if (syntax !== 'like') return { regex: pattern }
  if (!ignoresCase && escapeWith === undefined && !pattern.includes('_')) return { like: pattern }
  return { regex: likeToRegex(pattern, escapeWith), options: ignoresCase ? 'si' : 's' }
}

export function matchSql({ syntax, negated }: Pattern, subject: string, matcher: Matcher): string {
  const not = negated ? 'NOT ' : ''
  if ('like' in matcher) return `(${subject} ${not}LIKE ${quoteLiteral(matcher.like)})`
  const { regex, options } = matcher
  const name = syntax === 'regex-part' ? 'regexp_matches' : 'regexp_full_match'
  const given = [subject, quoteLiteral(regex), ...(options === undefined ? [] : [quoteLiteral(options)])]
  return `(${not}${name}(${given.join(', ')}))`
}

function likeToRegex(pattern: string, escapeWith: string | undefined): string {
  let regexText = ''
  let isEscaped = false
  for (const character of pattern) {
    if (!isEscaped && escapeWith !== undefined && escapeWith !== '' && character === escapeWith) {
      isEscaped = true
      continue
    }
    if (!isEscaped && character === '%') regexText += '.*'
    else if (!isEscaped && character === '_') regexText += '.'
    else regexText += character.replace(/[\\^$.|?*+()[\]{}]/, '\\$&')
    isEscaped = false
  }
  return regexText
}
