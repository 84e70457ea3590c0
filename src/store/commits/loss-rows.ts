/**
 * The open losses of one machine, while they are recorded.
 *
 * Owns: one row for each machine and endpoint, and how a later report changes it. Does not own: what a machine holds (losses.ts, left-on-disk.ts).
 * Law: losses of different machines are different rows, also if their seqs are the same. But what a machine has that adopted a log, or took over its
 * copies, is in the row that was recorded then, also once the machine before came back and said that its disk has it. A report only adds: what a
 * later one lacks may have been moved away by hand, or be lost with a part of the disk, and is not delivered by that.
 */
import type { Fence } from '#errors.ts'
import { safeSum } from '#lib/safe-sum.ts'
import { newId } from '#model/id.ts'
import { LossCause } from '#model/loss.ts'
import { eventOutsideApi, insertAuditEvent } from '../accounts/audit-events.ts'
import { inChunks } from '../chunks.ts'
import type { LossTables } from '../loss-tables.ts'
import type { Tx } from '../store.ts'
import {
  type LossRun,
  type MissingTotals,
  parseLossRuns,
  partitionRuns,
  printLossRuns,
  sumMissing,
  uniteLossRuns,
} from './loss-runs.ts'
import { countSeqs, type SeqRuns, subtractRuns, uniteRuns } from './seq-runs.ts'

type LossRow = LossTables['losses']

/** A machine that lost its place; null: it never had a credential. */
export type Machine = { readonly node_id: string; readonly credential_hash: string | null }

type Bounds = Pick<LossRow, 'first_seq' | 'last_seq'>

/** The seqs of no segment. */
export const noBounds: Bounds = { first_seq: null, last_seq: null }

export type LossOwner = Pick<LossRow, 'account_id' | 'endpoint_id' | 'node_name' | 'region'>

/** Segments of one endpoint that a machine has, and no commit. */
export type Held = Pick<LossRow, 'segments_unknown' | 'reported_at'> & {
  readonly cause: LossCause
  readonly runs: readonly LossRun[]
  /** Counts those of which no seq is known, too. */
  readonly bytes: number
  /** Counts only those; null if they are not counted. */
  readonly records_unknown: number | null
  /** The lowest and the highest seq among those; null if not known. */
  readonly boundsUnknown: Bounds
  /** It was counted on the disk, and not only reported by heartbeats. */
  readonly isExact: boolean
}

/** Losses and commits of one node wait for each other: a commit beside a report would be missing from both. */
export async function lockCommitsOf(db: Tx, node_id: string): Promise<void> {
  await db
    .insertInto('node_commits')
    .values({ node_id, commits: 0 })
    .onConflict((conflict) => conflict.column('node_id').doUpdateSet(({ ref }) => ({ commits: ref('node_commits.commits') })))
    .execute()
}

/** A machine has another credential from now on. Its losses stay its own. */
export async function renameMachine(db: Tx, node_id: string, hash: string, newHash: string): Promise<void> {
  await db
    .updateTable('losses')
    .set({ credential_hash: newHash })
    .where((eb) => eb.and({ node_id, credential_hash: hash }))
    .execute()
}

/**
 * A machine that had lost its place has a released id again, with another credential. It delivers what it has, so its losses are as they were at the
 * release. Does nothing for a credential that the node did not have, or that was revoked.
 */
export async function returnMachine(db: Tx, node_id: string, hash: string, newHash: string): Promise<void> {
  const former = await db
    .selectFrom('former_credentials')
    .select(['credential_hash', 'fence', 'ended_at', 'revoked_at'])
    .where('node_id', '=', node_id)
    .execute()
  const own = former.find(({ credential_hash }) => credential_hash === hash)
  const releases = former.filter(({ fence }) => fence === released).map(({ ended_at }) => ended_at)
  if (own === undefined || own.revoked_at !== null || releases.length === 0) return
  await db
    .updateTable('losses')
    .set({ credential_hash: newHash, cause: idReleased, recorded_at: Math.max(...releases) })
    .where((eb) => eb.and({ node_id, credential_hash: hash }))
    .where('recovered_at', 'is', null)
    .execute()
}

const adoptedLog: LossCause = 'node_adopted'
const takenOver: LossCause = 'node_taken_over'
const leftOnDisk: LossCause = 'left_on_disk'
const idReleased: LossCause = 'node_released'

/**
 * Returns the machines whose log this one has, by their credentials: each lost its place by an adoption, one after the other. In between are revoked
 * credentials, each of the same machine as the next one.
 */
async function listPredecessors(db: Tx, node_id: string, credential_hash: string): Promise<readonly string[]> {
  const former = await db
    .selectFrom('former_credentials')
    .select(['credential_hash', 'fence'])
    .where('node_id', '=', node_id)
    .orderBy('ended_at', 'desc')
    .execute()
  // The last one is its own, once it lost its place itself.
  const before = former.slice(former.findIndex((each) => each.credential_hash === credential_hash) + 1)
  const other = before.findIndex(({ fence }) => fence !== adopted && fence !== revoked)
  return (other < 0 ? before : before.slice(0, other)).map((each) => each.credential_hash)
}

const adopted: Fence = 'node_adopted'
const revoked: Fence = 'node_revoked'
const released: Fence = 'node_released'

/** Opens the losses of one machine for a report of it. */
export async function openLosses(db: Tx, { node_id, credential_hash }: Machine, now: number) {
  const earlier = credential_hash === null ? [] : await listPredecessors(db, node_id, credential_hash)
  const rows = await db
    .selectFrom('losses')
    .selectAll()
    .where('node_id', '=', node_id)
    // Rows of an earlier release do not say whose they are.
    .where(({ eb, or }) =>
      or([
        eb('credential_hash', 'is', null),
        ...(credential_hash === null ? [] : [eb('credential_hash', '=', credential_hash)]),
        ...(earlier.length === 0 ? [] : [eb('credential_hash', 'in', earlier)]),
      ]),
    )
    .where('recovered_at', 'is', null)
    .orderBy('recorded_at', 'desc')
    .execute()
  const isOnDisk = (row: LossRow) =>
    row.cause === leftOnDisk && row.credential_hash !== null && row.credential_hash !== credential_hash
  const known = Map.groupBy(
    rows.filter((row) => !isOnDisk(row)),
    ({ endpoint_id }) => endpoint_id,
  )
  const onDisks = Map.groupBy(rows.filter(isOnDisk), ({ endpoint_id }) => endpoint_id)
  const added: LossRow[] = []
  const accounts = new Set<string>()
  let losses = 0
  return {
    /** Records what the machine holds of an endpoint, in its open loss, or else in one that was confirmed, which is open again if it is more. */
    async put(owner: LossOwner, told: Held): Promise<void> {
      // The disk of a machine before, which came back, has the same.
      const held = told.isExact ? told : withoutRuns(told, onDisks.get(owner.endpoint_id) ?? [])
      if (held.runs.length === 0 && held.segments_unknown === 0) return
      losses += 1
      const own = known.get(owner.endpoint_id)
      const row = own?.find(({ confirmed_at }) => confirmed_at === null) ?? own?.[0]
      if (row === undefined) {
        added.push(newRow({ ...owner, node_id, credential_hash }, held, now))
        accounts.add(owner.account_id)
        return
      }
      const change = changeOf(row, held, now)
      if (change === undefined) return
      await db
        .updateTable('losses')
        // The machine before has the same on its disk, and may come back and say so.
        .set({ ...change.set, credential_hash: row.credential_hash ?? credential_hash })
        .where('id', '=', row.id)
        .execute()
      if (change.isMore) accounts.add(owner.account_id)
    },
    /** Tells the accounts. Returns the number of losses. */
    async end(): Promise<number> {
      for (const some of inChunks(added)) await db.insertInto('losses').values(some).execute()
      for (const account_id of accounts) {
        const event = { actor: 'inlet', operation: 'recordLosses', account_id, resource_id: node_id } as const
        await insertAuditEvent(db, eventOutsideApi(event, now))
      }
      return losses
    },
  }
}

/** Returns what is held without segments that these losses have with as many records. */
function withoutRuns(held: Held, losses: readonly LossRow[]): Held {
  const others = losses.flatMap((loss) => parseLossRuns(loss.runs))
  const [left, same] = partitionRuns(held.runs, others)
  return { ...held, runs: left, bytes: Math.max(0, held.bytes - sumMissing(same).bytes) }
}

function newRow(whose: LossOwner & Machine, held: Held, now: number): LossRow {
  const recovered = { records_recovered: 0, bytes_recovered: 0 }
  const times = { recorded_at: now, recovered_at: null, confirmed_at: null, confirmed_by: null }
  const { runs, segments_unknown, records_unknown, bytes } = held
  const missing = sumMissing(runs)
  const segments = safeSum([missing.segments, segments_unknown])
  return {
    ...{ id: newId(), ...whose, cause: held.cause, reported_at: held.reported_at, ...recovered, ...times },
    ...{ searched_at: null, search_problem: null },
    ...{ segments, segments_missing: segments, segments_unknown, runs: printLossRuns(runs), ...boundsOf(held), bytes },
    records: sumOf(missing.records, records_unknown),
  }
}

/** Returns how a report changes a row, and whether it has more than before; undefined for nothing. */
function changeOf(
  row: LossRow,
  held: Held,
  now: number,
): { readonly set: Partial<LossRow>; readonly isMore: boolean } | undefined {
  const before = parseLossRuns(row.runs)
  const runs = uniteLossRuns(before, held.runs)
  const [was, is] = [sumMissing(before), sumMissing(runs)]
  const segments_unknown = Math.max(row.segments_unknown, held.segments_unknown)
  const isMore =
    segments_unknown > row.segments_unknown ||
    countSeqs(subtractRuns(seqsOf(runs), seqsOf(before))) > 0 ||
    (was.records !== null && is.records !== null && is.records > was.records)
  const printed = printLossRuns(runs)
  const cause = causeOf(row, held)
  if (held.isExact && !isMore && cause === row.cause && printed === row.runs) return undefined
  const recovered = row.segments - row.segments_missing
  const segments_missing = safeSum([is.segments, segments_unknown])
  // More may be in the bucket than when it was searched.
  const search = isMore || !held.isExact ? { searched_at: null } : {}
  const set = {
    ...{ cause, reported_at: laterIfComplete(row, held), ...search, ...(held.isExact ? {} : { recorded_at: now }) },
    ...(isMore ? { confirmed_at: null, confirmed_by: null } : {}),
    ...{ segments: safeSum([recovered, segments_missing]), segments_missing, segments_unknown },
    ...{ runs: printed, ...widest(row, boundsOf({ ...held, runs })) },
    records: sumOf(sumOf(is.records, row.records_recovered), unknownRecords(row, was, held)),
    bytes: Math.max(row.bytes, safeSum([row.bytes_recovered, is.bytes])),
  }
  return { set, isMore }
}

/**
 * Returns as of when the row is that has both. A disk that lacks what was known may be an older copy, so what the machine acknowledged since the earlier
 * report may be on neither.
 */
function laterIfComplete(row: LossRow, { runs, segments_unknown, reported_at }: Held): number {
  const hasAll = printLossRuns(uniteLossRuns(parseLossRuns(row.runs), runs)) === printLossRuns(runs)
  return hasAll && segments_unknown >= row.segments_unknown ? reported_at : Math.min(row.reported_at, reported_at)
}

/** Returns why the row is lost, now that the machine told what it has. */
function causeOf(row: LossRow, { cause, runs }: Held): LossCause {
  // A copy lacks what was on the disk alone, also once the machine that has it adopts it.
  const isCopied = row.cause === takenOver && cause === adoptedLog
  // The rest is that of a machine that had its place after it.
  const isPart = cause === leftOnDisk && countSeqs(subtractRuns(seqsOf(parseLossRuns(row.runs)), seqsOf(runs))) > 0
  return isCopied || isPart ? LossCause.parse(row.cause) : cause
}

/** Returns the records of segments whose seqs are not known; null if they are not counted. */
function unknownRecords(row: LossRow, was: MissingTotals, { records_unknown }: Held): number | null {
  if (row.segments_unknown === 0) return records_unknown
  if (row.records === null || was.records === null || records_unknown === null) return null
  return Math.max(row.records - row.records_recovered - was.records, records_unknown)
}

/** Null if one of them is not known. */
function sumOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : safeSum([one, other])
}

function boundsOf({ runs, boundsUnknown }: Pick<Held, 'runs' | 'boundsUnknown'>): Bounds {
  return widest({ first_seq: runs[0]?.first_seq ?? null, last_seq: runs.at(-1)?.last_seq ?? null }, boundsUnknown)
}

function widest(one: Bounds, other: Bounds): Bounds {
  const choose = (least: (...seqs: readonly number[]) => number, ...seqs: readonly (number | null)[]) => {
    const known = seqs.filter((seq) => seq !== null)
    return known.length === 0 ? null : least(...known)
  }
  return {
    first_seq: choose(Math.min, one.first_seq, other.first_seq),
    last_seq: choose(Math.max, one.last_seq, other.last_seq),
  }
}

function seqsOf(runs: readonly LossRun[]): SeqRuns {
  return uniteRuns(runs.map(({ first_seq, last_seq }) => [first_seq, last_seq]))
}
