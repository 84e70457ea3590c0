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

/** Insertions, deletions and replacements of one character, and exchanges of two neighbours (optimal string alignment). */
function countEdits(a: string, b: string): number {
  let [beforePrevious, previous]: number[][] = [[], Array.from({ length: b.length + 1 }, (_, column) => column)]
  for (let row = 0; row < a.length; row++) {
    const current = [row + 1]
    for (let column = 0; column < b.length; column++) {
      const edits = [
        (previous?.[column] ?? 0) + (a[row] === b[column] ? 0 : 1),
        (previous?.[column + 1] ?? 0) + 1,
        (current[column] ?? 0) + 1,
      ]
      const isExchanged = row > 0 && column > 0 && a[row] === b[column - 1] && a[row - 1] === b[column]
      if (isExchanged) edits.push((beforePrevious?.[column - 1] ?? 0) + 1)
      current.push(Math.min(...edits))
    }
    ;[beforePrevious, previous] = [previous, current]
  }
  return previous?.at(-1) ?? 0
}
