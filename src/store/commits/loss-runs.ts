/**
 * Runs of segments that a loss misses: a machine had acknowledged them, and commits have some of that. Stored as JSON.
 *
 * Law: a run ends once each of its seqs has a commit, and these have as many records as it had. So no commit of another segment ends it, and
 * neither does a commit of a shorter copy. A run of several segments compares their sum. One with fewer segments than seqs has commits of others
 * between them, so their records do not count.
 */
import { safeSum } from '#lib/safe-sum.ts'
import { type HeldSegments, joinHeld, joinTwo } from '#model/held-segments.ts'
import { countSeqs, type SeqRuns, subtractRuns, uniteRuns } from './seq-runs.ts'

export type LossRun = HeldSegments & {
  /** Seqs with a commit. */
  readonly done: SeqRuns
  /** Records of these commits, at most as many as there were. */
  readonly records_done: number
  readonly bytes_done: number
}

export type Committed = { readonly seq: number; readonly records: number; readonly wal_bytes: number }

const runsMax = 2_000

export function parseLossRuns(text: string): readonly LossRun[] {
  return JSON.parse(text) as readonly LossRun[]
}

/** Neighbours of a loss that has very many are stored together. */
export function printLossRuns(runs: readonly LossRun[]): string {
  const join = (one: LossRun, next: LossRun): LossRun => ({
    ...joinTwo(one, next),
    done: uniteRuns(one.done, next.done),
    records_done: safeSum([one.records_done, next.records_done]),
    bytes_done: safeSum([one.bytes_done, next.bytes_done]),
  })
  return JSON.stringify(joinHeld(runs, runsMax, join))
}

/** Returns what of these segments is missing, given commits of the log. */
export function missingOf(held: readonly HeldSegments[], commits: readonly Committed[]): readonly LossRun[] {
  const runs = joinSame(held).map((each): LossRun => ({ ...each, done: [], records_done: 0, bytes_done: 0 }))
  // The commit of a seq with the most records counts.
  return addCommits(
    runs,
    commits.toSorted((a, b) => b.records - a.records),
  )
}

/** Returns what is still missing once these commits are recorded. */
export function addCommits(runs: readonly LossRun[], commits: readonly Committed[]): readonly LossRun[] {
  const changed = [...runs]
  for (const commit of commits) {
    const at = findAt(changed, commit.seq)
    const run = changed[at]
    if (run !== undefined) changed[at] = addCommit(run, commit)
  }
  return changed.filter((run) => !isWhole(run))
}

/** A disk may have two segments of one seq. */
function joinSame(held: readonly HeldSegments[]): readonly HeldSegments[] {
  const apart: HeldSegments[] = []
  for (const { first_seq, last_seq, segments, records, bytes } of held.toSorted((a, b) => a.first_seq - b.first_seq)) {
    const each = { first_seq, last_seq, segments, records, bytes }
    const before = apart.at(-1)
    if (before === undefined || before.last_seq < first_seq) apart.push(each)
    else apart[apart.length - 1] = joinTwo(before, each)
  }
  return apart
}

/** By halves: a loss may have a thousand runs, and a report ten thousand commits. */
function findAt(runs: readonly LossRun[], seq: number): number {
  let [from, to] = [0, runs.length - 1]
  while (from <= to) {
    const middle = (from + to) >> 1
    const run = runs[middle]
    if (run === undefined) break
    if (seq < run.first_seq) to = middle - 1
    else if (seq > run.last_seq) from = middle + 1
    else return middle
  }
  return -1
}

function addCommit(run: LossRun, { seq, records, wal_bytes }: Committed): LossRun {
  const done = uniteRuns(run.done, [[seq, seq]])
  if (countSeqs(done) === countSeqs(run.done)) return run
  // Some of the seqs are those of other segments.
  if (run.segments < run.last_seq - run.first_seq + 1) return { ...run, done }
  const most = run.records ?? Number.MAX_SAFE_INTEGER
  return {
    ...run,
    done,
    records_done: Math.min(most, run.records_done + records),
    bytes_done: Math.min(run.bytes, run.bytes_done + wal_bytes),
  }
}

function isWhole({ first_seq, last_seq, records, done, records_done }: LossRun): boolean {
  return countSeqs(done) === last_seq - first_seq + 1 && (records === null || records_done >= records)
}

export function findLossRun(runs: readonly LossRun[], seq: number): LossRun | undefined {
  return runs[findAt(runs, seq)]
}

export type MissingTotals = { readonly segments: number; readonly records: number | null; readonly bytes: number }

/** Returns how much is missing, at most. */
export function sumMissing(runs: readonly LossRun[]): MissingTotals {
  let [segments, bytes] = [0, 0]
  let records: number | null = 0
  for (const run of runs) {
    // One whose commits have fewer records is missing, too.
    segments = safeSum([segments, Math.max(1, Math.min(run.segments, run.last_seq - run.first_seq + 1 - countSeqs(run.done)))])
    bytes = safeSum([bytes, run.bytes - run.bytes_done])
    records = records === null || run.records === null ? null : safeSum([records, run.records - run.records_done])
  }
  return { segments, records, bytes }
}

/**
 * Returns what is missing by two reports of one machine. What the later one lacks stays: it may have been moved by hand, or be lost with a part of
 * the disk. Where both know a segment, the higher count holds.
 */
export function uniteLossRuns(before: readonly LossRun[], later: readonly LossRun[]): readonly LossRun[] {
  const kept: LossRun[] = []
  const added = new Map(later.map((run) => [`${run.first_seq}-${run.last_seq}`, run]))
  for (const run of before) {
    const name = `${run.first_seq}-${run.last_seq}`
    const same = added.get(name)
    if (same === undefined) kept.push(...cutOut(run, later))
    else added.set(name, higherOf(run, same))
  }
  return [...kept, ...added.values()].toSorted((a, b) => a.first_seq - b.first_seq)
}

/** Returns the runs that others lack, or have with fewer records, and those that they have. */
export function partitionRuns(
  runs: readonly LossRun[],
  others: readonly LossRun[],
): readonly [lacking: readonly LossRun[], had: readonly LossRun[]] {
  const [lacking, had]: [LossRun[], LossRun[]] = [[], []]
  for (const run of runs) {
    const same = others.filter(({ first_seq, last_seq }) => first_seq <= run.last_seq && last_seq >= run.first_seq)
    const seqs = uniteRuns(same.map(({ first_seq, last_seq }) => [first_seq, last_seq]))
    const isCovered = subtractRuns([[run.first_seq, run.last_seq]], seqs).length === 0
    const [mine, theirs] = [sumMissing([run]).records, sumMissing(same).records]
    const isMore = mine !== null && theirs !== null && mine > theirs
    if (isCovered && !isMore) had.push(run)
    else lacking.push(run)
  }
  return [lacking, had]
}

function higherOf(one: LossRun, other: LossRun): LossRun {
  const [few, many] = (one.records ?? 0) > (other.records ?? 0) ? [other, one] : [one, other]
  const known = few.records_done > many.records_done ? few : many
  return {
    ...many,
    bytes: Math.max(one.bytes, other.bytes),
    done: uniteRuns(one.done, other.done),
    records_done: known.records_done,
    bytes_done: known.bytes_done,
  }
}

/** Returns what is left of a run without the seqs of others. How many records the rest has is known if it is one run, at most. */
function cutOut(run: LossRun, others: readonly LossRun[]): readonly LossRun[] {
  const overlapping = others.filter(({ first_seq, last_seq }) => first_seq <= run.last_seq && last_seq >= run.first_seq)
  if (overlapping.length === 0) return [run]
  const rest = subtractRuns(
    [[run.first_seq, run.last_seq]],
    uniteRuns(overlapping.map((each) => [each.first_seq, each.last_seq])),
  )
  const inside = overlapping.filter(({ first_seq, last_seq }) => first_seq >= run.first_seq && last_seq <= run.last_seq)
  // The others are all of its segments: what is between these is not missing.
  if (inside.reduce((left, { segments }) => left - segments, run.segments) <= 0) return []
  const [all, theirs] = [sumMissing([run]), sumMissing(inside)]
  const isKnown = all.records !== null && theirs.records !== null && inside.length === overlapping.length
  const records = isKnown ? Math.max(0, all.records - theirs.records) : null
  const bytes = Math.max(0, all.bytes - theirs.bytes)
  const missing = rest.filter((seqs) => countSeqs(subtractRuns([seqs], run.done)) > 0)
  return missing.map(([first_seq, last_seq]) => {
    const done = subtractRuns(run.done, subtractRuns([[run.first_seq, run.last_seq]], [[first_seq, last_seq]]))
    const segments = Math.min(run.segments, last_seq - first_seq + 1)
    const rest = { records: missing.length === 1 ? records : null, bytes: missing.length === 1 ? bytes : 0 }
    return { first_seq, last_seq, segments, ...rest, done, records_done: 0, bytes_done: 0 }
  })
}
