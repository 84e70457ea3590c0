/** SQL that reads dates and times from text where DuckDB's own cast would return another value than the text says. */

/** A time with an offset at its end, such as +02, -05:30 or +00:00:15, and the characters that DuckDB skips after it. */
const OFFSET = ':\\d\\d?(\\.\\d*)?[+-]\\d\\d(:?\\d\\d){0,2}:?[\\s\\v]*$'

/**
 * Letters that no time with a numeric offset contains. DuckDB's TIMESTAMPTZ also takes zones by name, but then reads the texts of later
 * rows in that zone: one record would shift the times of others.
 */
const LETTERS = '[A-SU-Ya-z]'

/** DuckDB's cast to TIME would drop the offset. */
const OFFSET_OF_TIME = ':\\d\\d?(\\.\\d*)?\\s*[+-]'

export function instantFromText(text: string): string {
  const plain = `TRY_CAST(${text} AS TIMESTAMP)`
  // DuckDB's own cast drops an offset, which gives another instant. The cast by way of TIMESTAMPTZ is right and five times slower.
  const nameless = `CASE WHEN NOT regexp_matches(${text}, '${LETTERS}') THEN ${text} END`
  const utc = `TRY_CAST(TRY_CAST(${nameless} AS TIMESTAMPTZ) AS TIMESTAMP)`
  return `CASE WHEN ends_with(${text}, 'Z') THEN ${plain} WHEN regexp_matches(${text}, '${OFFSET}') THEN ${utc} ELSE ${plain} END`
}

export function timeOfDayFromText(text: string): string {
  return `CASE WHEN NOT regexp_matches(${text}, '${OFFSET_OF_TIME}') THEN TRY_CAST(${text} AS TIME) END`
}

/** True for the text of a list without infinite dates. */
export function isFiniteText(text: string): string {
  return `NOT regexp_matches(${text}, '(?i)inf')`
}

/** True for the text of a list without zone names and without infinite times. */
export function isZonelessText(text: string): string {
  return `NOT regexp_matches(replace(${text}, 'NULL', ''), '${LETTERS}')`
}

/** True for the text of a list without offsets and without 24:00. */
export function isTimeOfDay(text: string): string {
  return `NOT contains(${text}, '24:00') AND NOT regexp_matches(${text}, '${OFFSET_OF_TIME}')`
}
