/** ISO 8601 from the dates and times that DuckDB prints, such as `2026-11-20 08:00:00.5` and `0044-03-15 (BC)`. */

const printedDate = /^(\d+)-(\d\d-\d\d)( \(BC\))?/
const printedTime = / (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?/

/** Years have four digits, or a sign and at least six digits outside 0000 to 9999. 1 BC is the year 0000. */
export function isoDate(text: string): string {
  const [, digits = '', rest = '', beforeChrist] = printedDate.exec(text) ?? []
  const year = beforeChrist === undefined ? Number(digits) : 1 - Number(digits)
  const padded = String(Math.abs(year)).padStart(year >= 0 && year <= 9_999 ? 4 : 6, '0')
  return `${year < 0 ? '-' : year > 9_999 ? '+' : ''}${padded}-${rest}`
}

/** In UTC, with microseconds. */
export function isoInstant(text: string): string {
  const [, time = '', fraction = ''] = printedTime.exec(text) ?? []
  return `${isoDate(text)}T${time}.${fraction.padEnd(6, '0')}Z`
}
