/** SQL that casts text to dates and times where DuckDB's own cast would return a wrong value, or none. */

/** The characters that DuckDB skips after an offset. */
const END = ':?[\\s\\v]*$'

/** The part of a time before its offset. */
const SECONDS = ':\\d\\d?(\\.\\d*)?'

/** A time with an offset at its end, such as +02, -05:30 or +00:00:15. */
const OFFSET = `${SECONDS}[+-]\\d\\d(:?\\d\\d){0,2}${END}`

/** Offsets from -14:00 to +14:00. No clock on Earth is further from UTC, so that others are mistakes. */
const REAL_OFFSET = '[+-]((0\\d|1[0-3])(:?[0-5]\\d){0,2}|14(:?00){0,2})'
const UNREAL_OFFSET = `${SECONDS}[+-](1[5-9]|[2-9]\\d|14:?(0[1-9]|[1-9]\\d|00:?(0[1-9]|[1-9]\\d))|\\d\\d(:?\\d\\d)?:?[6-9]\\d)`

/**
 * Letters that no time with a numeric offset contains. DuckDB's TIMESTAMPTZ also accepts zone names, but then reads the
 * texts of later rows in that zone: one record would shift the times of others.
 */
const LETTERS = 'A-SU-Ya-z'

/** Names of the zone, as RFC 9557 allows them after an offset, such as +01:00[Europe/Berlin]. One that must be checked begins with "!". */
const ZONE_NAMES = '(\\[[^!\\[\\]]+\\])'
/** A time with a zone that `inDuckDbSyntax` turns into one that DuckDB reads. The offset alone says which instant it is. */
const ZONED = `^[^${LETTERS}]*:\\d\\d?(\\.\\d*)?(Z|${REAL_OFFSET})${ZONE_NAMES}*$`

/** DuckDB's cast to TIME would drop the offset. */
const OFFSET_OF_TIME = ':\\d\\d?(\\.\\d*)?\\s*[+-]'

export function instantFromText(text: string): string {
  const plain = `TRY_CAST(${text} AS TIMESTAMP)`
  // DuckDB's own cast drops an offset and returns another instant. The cast through TIMESTAMPTZ is correct but five times slower.
  const nameless = `CASE WHEN regexp_matches(${text}, '^[^${LETTERS}]*${REAL_OFFSET}${END}') THEN ${text} END`
  // A cast between the two types fails the statement at the end of their range, even as TRY_CAST.
  const utc = `make_timestamp(epoch_us(TRY_CAST(${nameless} AS TIMESTAMPTZ)))`
  const common = `CASE WHEN ends_with(${text}, 'Z') THEN ${plain} WHEN regexp_matches(${text}, '${OFFSET}') THEN ${utc} ELSE ${plain} END`
  const zoned = `CASE WHEN regexp_matches(${text}, '${ZONED}') THEN ${inDuckDbSyntax(text)} END`
  return `coalesce(${common}, make_timestamp(epoch_us(TRY_CAST(${zoned} AS TIMESTAMPTZ))))`
}

/** Returns the same time with seconds and without names of its zone: ISO 8601 and Java allow 08:15Z, DuckDB does not. Other text stays as it is. */
export function inDuckDbSyntax(text: string): string {
  return `regexp_replace(regexp_replace(${text}, '(Z|[+-]\\d[\\d:]*)${ZONE_NAMES}+$', '\\1'), '^([^:]*:\\d\\d)(Z|[+-])', '\\1:00\\2')`
}

/** Returns the same instant as TIMESTAMPTZ. */
export function zonedFromText(text: string): string {
  return `make_timestamptz(epoch_us(${instantFromText(text)}))`
}

export function timeOfDayFromText(text: string): string {
  const time = `coalesce(TRY_CAST(${text} AS TIME), TRY_CAST(${inDuckDbSyntax(text)} AS TIME))`
  return `CASE WHEN NOT regexp_matches(${text}, '${OFFSET_OF_TIME}') THEN ${time} END`
}

/** Returns a condition: the text of a list has no zone names, no infinite times, and no offsets beyond 14 hours. */
export function isZonelessText(text: string): string {
  return `NOT regexp_matches(replace(${text}, 'NULL', ''), '[${LETTERS}]|${UNREAL_OFFSET}')`
}

/** Returns a condition: the text of a list has no offsets. */
export function isTimeOfDay(text: string): string {
  return `NOT regexp_matches(${text}, '${OFFSET_OF_TIME}')`
}
