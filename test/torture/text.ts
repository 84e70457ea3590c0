/** Returns a duration as `4.2 s`, or in minutes or hours if it is long. */
export function seconds(ms: number): string {
  if (ms >= 3_600_000) return `${Math.round(ms / 3_600_000)} h`
  return ms >= 90_000 ? `${Math.round(ms / 60_000)} min` : `${(ms / 1000).toFixed(1)} s`
}

/** Returns an integer with separators: 12,345. */
export function count(number: number): string {
  return number.toLocaleString('en-US')
}

/** Returns the first items of a list, and how many more there are. */
export function listSome(items: Iterable<string | number>, most = 8): string {
  const all = [...items]
  const more = all.length - most
  return `${all.slice(0, most).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
