/** Returns the known name that a mistyped one probably means: the one with the fewest edits, if they are few or it only differs in length. */
export function nearestName(typed: string, known: readonly string[]): string | undefined {
  const [nearest] = known
    .map((name) => ({ name, edits: countEdits(typed, name) }))
    .filter(
      ({ name, edits }) => edits <= Math.max(name.length, typed.length) / 3 || name.startsWith(typed) || typed.startsWith(name),
    )
    .sort((a, b) => a.edits - b.edits)
  return nearest?.name
}

/** Levenshtein's distance: insertions, deletions and replacements of one character. */
function countEdits(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (const [row, character] of [...a].entries()) {
    const current = [row + 1]
    for (const [column, other] of [...b].entries()) {
      const replaced = (previous[column] ?? 0) + (character === other ? 0 : 1)
      current.push(Math.min(replaced, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1))
    }
    previous = current
  }
  return previous.at(-1) ?? 0
}
