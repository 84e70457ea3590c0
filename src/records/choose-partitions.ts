/**
 * Chooses the partitions that have files, so that as many records as possible have a place.
 *
 * The best choice is a problem for which only slow algorithms are known, so this is a greedy one: the records that need the fewest more partitions for
 * each of them come first. Records that need one partition each get the best choice.
 * Law: the same candidates in the same order have the same partitions.
 */

/** Records that need the same partitions, which have no comma. */
export type Candidate = { readonly records: number; readonly partitions: readonly string[] }

export function choosePartitions(candidates: readonly Candidate[], partitionsMax: number): ReadonlySet<string> {
  const fitting = candidates.filter(({ partitions }) => partitions.length <= partitionsMax)
  const largest = fitting.reduce<Candidate | undefined>(
    (best, each) => (best === undefined || each.records > best.records ? each : best),
    undefined,
  )
  const chosen = chooseGreedily(fitting, partitionsMax, [])
  if (largest === undefined) return chosen
  // Small candidates that come first may leave too few places for one with most of the records.
  const withLargest = chooseGreedily(fitting, partitionsMax, largest.partitions)
  return recordsIn(fitting, withLargest) > recordsIn(fitting, chosen) ? withLargest : chosen
}

function chooseGreedily(candidates: readonly Candidate[], partitionsMax: number, first: readonly string[]): ReadonlySet<string> {
  const chosen = new Set(first)
  const demand = demandOf(candidates)
  let rest = candidates
  while (true) {
    rest = withoutChosen(rest, chosen).filter(({ partitions }) => partitions.length <= partitionsMax - chosen.size)
    const best = rest.reduce<Candidate | undefined>(
      (best, each) => (best === undefined || isBetter(each, best, demand) ? each : best),
      undefined,
    )
    if (best === undefined) return chosen
    for (const partition of best.partitions) chosen.add(partition)
  }
}

/** Returns the candidates that still need partitions. Those that need the same ones become one. */
function withoutChosen(candidates: readonly Candidate[], chosen: ReadonlySet<string>): readonly Candidate[] {
  const rest = new Map<string, Candidate>()
  for (const { records, partitions } of candidates) {
    const missing = partitions.filter((partition) => !chosen.has(partition))
    const key = missing.join(',')
    if (missing.length > 0) rest.set(key, { records: records + (rest.get(key)?.records ?? 0), partitions: missing })
  }
  return [...rest.values()]
}

/** Compares records for each partition, then how many records need these partitions at all. */
function isBetter(one: Candidate, other: Candidate, demand: ReadonlyMap<string, number>): boolean {
  const byRecords = one.records * other.partitions.length - other.records * one.partitions.length
  if (byRecords !== 0) return byRecords > 0
  const demandFor = ({ partitions }: Candidate) => partitions.reduce((sum, each) => sum + (demand.get(each) ?? 0), 0)
  return demandFor(one) * other.partitions.length > demandFor(other) * one.partitions.length
}

function demandOf(candidates: readonly Candidate[]): ReadonlyMap<string, number> {
  const demand = new Map<string, number>()
  for (const { records, partitions } of candidates)
    for (const partition of partitions) demand.set(partition, (demand.get(partition) ?? 0) + records)
  return demand
}

function recordsIn(candidates: readonly Candidate[], chosen: ReadonlySet<string>): number {
  return candidates.reduce(
    (sum, { records, partitions }) => sum + (partitions.every((partition) => chosen.has(partition)) ? records : 0),
    0,
  )
}
