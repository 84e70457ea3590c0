/**
 * SQL that prints JSON as every parser reads it. DuckDB accepts NaN and the infinities, also as `inf`, and prints them as they are. Here they
 * become text.
 */
const LITERAL = '-?(?i:nan|inf(?:inity)?)'

/** How literals begin in the spellings that programs print. To search for all mixtures of case would take five times as long. */
const beginnings = ['nan', 'NaN', 'NAN', 'inf', 'Inf', 'INF']

/** Matches the text before a literal, with strings as a whole; then the literal, or the end. A string never contains a match. */
const NEXT = `((?:"(?:[^"\\\\]|\\\\.)*"|[^"])*?)(${LITERAL}|$)`

/** `json` is SQL for JSON without spaces, and is repeated. */
export function strictJson(json: string): string {
  // The end is not a literal: what is added there is taken away.
  const quoted = `regexp_replace(regexp_replace(${json}, '${NEXT}', '\\1"\\2"', 'g'), '""$', '')`
  const mayHaveLiteral = beginnings.map((beginning) => `contains(${json}, '${beginning}')`).join(' OR ')
  return `CASE WHEN ${mayHaveLiteral} THEN CAST(${quoted} AS JSON) ELSE ${json} END`
}
