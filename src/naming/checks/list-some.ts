/** Values that a reason lists. Whoever serves a certificate or an answer decides how many there are, and each endpoint has the reason. */
const listedMax = 20

/** Returns the first values, and how many more there are. */
export function listSome(values: readonly string[]): string {
  const more = values.length - listedMax
  return more > 0 ? `${values.slice(0, listedMax).join(', ')} and ${more} more` : values.join(', ')
}
