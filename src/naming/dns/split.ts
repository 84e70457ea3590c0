/** Splits changes, in their order, into parts whose sizes stay within all bounds. One that is larger by itself is a part of its own. */
export function* splitBySize<T>(
  changes: readonly T[],
  sizesOf: (change: T) => readonly number[],
  bounds: readonly number[],
): Generator<readonly T[]> {
  let part: T[] = []
  let used = bounds.map(() => 0)
  for (const change of changes) {
    const sizes = sizesOf(change)
    const add = (to: readonly number[]) => to.map((size, index) => size + (sizes[index] ?? 0))
    if (part.length > 0 && add(used).some((size, index) => size > (bounds[index] ?? 0))) {
      yield part
      part = []
      used = bounds.map(() => 0)
    }
    part.push(change)
    used = add(used)
  }
  if (part.length > 0) yield part
}
