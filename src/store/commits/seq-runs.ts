/** Sets of seqs, as runs of neighbours: ascending, apart, each from its first to its last seq. Stored as JSON. */
export type SeqRuns = readonly (readonly [first: number, last: number])[]

/** A set that has more is stored with its closest runs joined: it is an upper bound then. */
const runsMax = 1_000

export function parseRuns(text: string): SeqRuns {
  return JSON.parse(text) as SeqRuns
}

export function printRuns(runs: SeqRuns): string {
  if (runs.length <= runsMax) return JSON.stringify(runs)
  const gaps = runs.slice(1).map(([first], at) => first - (runs[at]?.[1] ?? 0))
  const least = gaps.toSorted((a, b) => b - a)[runsMax - 2] ?? 0
  const joined: [number, number][] = []
  for (const [at, [first, last]] of runs.entries()) {
    const before = joined.at(-1)
    // Gaps that are as large as the least one are all joined: there are never more runs than the maximum.
    if (before === undefined || (gaps[at - 1] ?? 0) > least) joined.push([first, last])
    else before[1] = last
  }
  return JSON.stringify(joined)
}

export function countSeqs(runs: SeqRuns): number {
  return runs.reduce((sum, [first, last]) => sum + last - first + 1, 0)
}

export function findRun(runs: SeqRuns, seq: number): SeqRuns[number] | undefined {
  return runs.find(([first, last]) => first <= seq && seq <= last)
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
