/** Converts the dates and times that DuckDB prints to ISO 8601, such as `2026-11-20 08:00:00.5` and `0044-03-15 (BC)`. */

const printedDate = /^(\d+)-(\d\d-\d\d)( \(BC\))?/
const printedTime = / (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?/

/** Returns an ISO date. Years outside 0000 to 9999 have a sign and at least six digits. 1 BC is the year 0000. */
export function toIsoDate(text: string): string {
  const [, digits = '', rest = '', beforeChrist] = printedDate.exec(text) ?? []
  const year = beforeChrist === undefined ? Number(digits) : 1 - Number(digits)
  const padded = String(Math.abs(year)).padStart(year >= 0 && year <= 9_999 ? 4 : 6, '0')
  return `${year < 0 ? '-' : year > 9_999 ? '+' : ''}${padded}-${rest}`
}

/** Returns an ISO time in UTC with microseconds. */
export function toIsoInstant(text: string): string {
  const [, time = '', fraction = ''] = printedTime.exec(text) ?? []
  return `${toIsoDate(text)}T${time}.${fraction.padEnd(6, '0')}Z`
}
