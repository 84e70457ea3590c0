/** Sets of seqs, as runs of neighbours: ascending, apart, each from its first to its last seq. */
export type SeqRuns = readonly (readonly [first: number, last: number])[]

export function countSeqs(runs: SeqRuns): number {
  return runs.reduce((sum, [first, last]) => sum + last - first + 1, 0)
}

export function uniteRuns(...some: readonly SeqRuns[]): SeqRuns {
  const united: [number, number][] = []
  for (const [first, last] of some.flat().toSorted(([a], [b]) => a - b)) {
    const before = united.at(-1)
    if (before === undefined || first > before[1] + 1) united.push([first, last])
    else before[1] = Math.max(before[1], last)
  }
  return united
}

export function subtractRuns(runs: SeqRuns, removed: SeqRuns): SeqRuns {
  const left: [number, number][] = []
  let at = 0
  for (const [first, last] of runs) {
    let from = first
    while (at < removed.length && (removed[at]?.[1] ?? 0) < from) at += 1
    for (let next = at; from <= last; next += 1) {
      const [start, end] = removed[next] ?? [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
      if (start > last) {
        left.push([from, last])
        break
      }
      if (start > from) left.push([from, start - 1])
      from = end + 1
    }
  }
  return left
}
