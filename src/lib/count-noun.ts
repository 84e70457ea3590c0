/** Returns a number with its noun: `1 segment`, `2 segments`. For nouns whose plural has an s. */
export function countNoun(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
