/** SQL that casts text to dates and times where DuckDB's own cast would return a wrong value. */

/** A time with an offset at its end, such as +02, -05:30 or +00:00:15, and the characters that DuckDB skips after it. */
const OFFSET = ':\\d\\d?(\\.\\d*)?[+-]\\d\\d(:?\\d\\d){0,2}:?[\\s\\v]*$'

/**
 * Letters that no time with a numeric offset contains. DuckDB's TIMESTAMPTZ also accepts zone names, but then reads the
 * texts of later rows in that zone: one record would shift the times of others.
 */
const LETTERS = '[A-SU-Ya-z]'

/** DuckDB's cast to TIME would drop the offset. */
const OFFSET_OF_TIME = ':\\d\\d?(\\.\\d*)?\\s*[+-]'

export function instantFromText(text: string): string {
  const plain = `TRY_CAST(${text} AS TIMESTAMP)`
  // DuckDB's own cast drops an offset and returns another instant. The cast through TIMESTAMPTZ is correct but five times slower.
  const nameless = `CASE WHEN NOT regexp_matches(${text}, '${LETTERS}') THEN ${text} END`
  const utc = `TRY_CAST(TRY_CAST(${nameless} AS TIMESTAMPTZ) AS TIMESTAMP)`
  return `CASE WHEN ends_with(${text}, 'Z') THEN ${plain} WHEN regexp_matches(${text}, '${OFFSET}') THEN ${utc} ELSE ${plain} END`
}

export function timeOfDayFromText(text: string): string {
  return `CASE WHEN NOT regexp_matches(${text}, '${OFFSET_OF_TIME}') THEN TRY_CAST(${text} AS TIME) END`
}

/** Returns a condition: the text of a list has no infinite dates. */
export function isFiniteText(text: string): string {
  return `NOT regexp_matches(${text}, '(?i)inf')`
}

/** Returns a condition: the text of a list has no zone names and no infinite times. */
export function isZonelessText(text: string): string {
  return `NOT regexp_matches(replace(${text}, 'NULL', ''), '${LETTERS}')`
}

/** Returns a condition: the text of a list has no offsets and no 24:00. */
export function isTimeOfDay(text: string): string {
  return `NOT contains(${text}, '24:00') AND NOT regexp_matches(${text}, '${OFFSET_OF_TIME}')`
}
