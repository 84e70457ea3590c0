/**
 * The open losses of one machine, while they are recorded.
 *
 * Owns: one row for each machine and endpoint, and how a later report changes it. Does not own: what a machine holds (losses.ts, left-on-disk.ts).
 * Law: losses of different machines are different rows, also if their seqs are the same. A report adds: what is missing from a later one may have
 * been moved away by hand, and is not delivered by that. Only the first report of a disk replaces what was reported before.
 */
import { newId } from '#model/id.ts'
import type { LossCause } from '#model/loss.ts'
import { eventOutsideApi, insertAuditEvent } from '../accounts/audit-events.ts'
import { inChunks } from '../chunks.ts'
import type { LossTables } from '../loss-tables.ts'
import type { Tx } from '../store.ts'
import { countSeqs, parseRuns, printRuns, type SeqRuns, subtractRuns, uniteRuns } from './seq-runs.ts'

type LossRow = LossTables['losses']

/** A machine that lost its place; null: it never had a credential. */
export type Machine = { readonly node_id: string; readonly credential_hash: string | null }

export type LossOwner = Pick<LossRow, 'account_id' | 'endpoint_id' | 'node_name' | 'region'>

/** Records of one endpoint that a machine has, and no commit. */
export type Held = Pick<
  LossRow,
  'first_seq' | 'last_seq' | 'segments' | 'segments_unknown' | 'records' | 'bytes' | 'reported_at'
> & {
  readonly cause: LossCause
  /** Among these seqs are the segments without a commit. */
  readonly missing: SeqRuns
  /** Among these seqs are segments whose commits have fewer records than the disk. */
  readonly partial: SeqRuns
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

/** Opens the losses of one machine for a report of it. */
export async function openLosses(db: Tx, { node_id, credential_hash }: Machine, now: number) {
  const rows = await db
    .selectFrom('losses')
    .selectAll()
    .where('node_id', '=', node_id)
    .where('credential_hash', credential_hash === null ? 'is' : '=', credential_hash)
    .where('recovered_at', 'is', null)
    .orderBy('recorded_at', 'desc')
    .execute()
  const known = Map.groupBy(rows, ({ endpoint_id }) => endpoint_id)
  const added: LossRow[] = []
  const accounts = new Set<string>()
  let losses = 0
  return {
    /** Records what the machine holds of an endpoint, in its open loss, or else in one that was confirmed, which is open again if it is more. */
    async put(owner: LossOwner, held: Held): Promise<void> {
      losses += 1
      const own = known.get(owner.endpoint_id)
      const row = own?.find(({ confirmed_at }) => confirmed_at === null) ?? own?.[0]
      if (row === undefined) {
        added.push(newRow({ ...owner, node_id, credential_hash }, held, now))
        accounts.add(owner.account_id)
        return
      }
      const change = changeOf(row, held)
      if (change === undefined) return
      await db.updateTable('losses').set(change.set).where('id', '=', row.id).execute()
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

function newRow(whose: LossOwner & Machine, { missing, partial, isExact: _, ...held }: Held, now: number): LossRow {
  const seqs = { missing_seqs: printRuns(missing), partial_seqs: printRuns(partial) }
  const recovered = { segments_missing: held.segments, records_recovered: 0, bytes_recovered: 0 }
  const times = { recorded_at: now, recovered_at: null, confirmed_at: null, confirmed_by: null, searched_at: null }
  return { id: newId(), ...whose, ...held, ...seqs, ...recovered, ...times }
}

/** Returns how a report changes a row, and whether it has more than before; undefined for nothing. */
function changeOf(row: LossRow, held: Held): { readonly set: Partial<LossRow>; readonly isMore: boolean } | undefined {
  const { missing, partial } = held
  const before = { missing: parseRuns(row.missing_seqs), partial: parseRuns(row.partial_seqs) }
  const [seqs, seqsBefore] = [uniteRuns(missing, partial), uniteRuns(before.missing, before.partial)]
  const recovered = row.segments - row.segments_missing
  const more = countSeqs(subtractRuns(seqs, seqsBefore))
  const records = held.records === null ? null : held.records + row.records_recovered
  const hasMoreRecords = records !== null && row.records !== null && records > row.records
  const isMore = more > 0 || hasMoreRecords || held.segments + recovered > row.segments
  // A removal or a release records what the node had reported. Its disk knows better.
  const isFirstCount = held.isExact && (row.cause !== held.cause || row.reported_at < row.recorded_at)
  if (held.isExact && !isFirstCount && !isMore) return undefined
  const state = isMore ? { confirmed_at: null, confirmed_by: null, searched_at: null } : {}
  // A segment that is missing from this report still counts.
  const others = isFirstCount ? [] : subtractRuns(seqsBefore, seqs)
  const segments_missing = held.segments + Math.min(row.segments_missing, countSeqs(others))
  const all = {
    missing: isFirstCount ? missing : uniteRuns(subtractRuns(before.missing, partial), missing),
    partial: isFirstCount ? partial : uniteRuns(before.partial, partial),
  }
  const set = {
    ...{ cause: held.cause, reported_at: held.reported_at, ...state },
    ...{ missing_seqs: printRuns(all.missing), partial_seqs: printRuns(all.partial) },
    ...{ segments: recovered + segments_missing, segments_missing, segments_unknown: held.segments_unknown },
    ...boundsOf(row, held),
    records: isFirstCount ? records : sumOf(row.records, held.records, row.records_recovered, others.length > 0 && more > 0),
    bytes: isFirstCount ? held.bytes + row.bytes_recovered : Math.max(row.bytes, held.bytes + row.bytes_recovered),
  }
  return { set, isMore }
}

/** Null if one of them is not known. Of other segments than before, the records are added. */
function sumOf(before: number | null, held: number | null, recovered: number, areOthers: boolean): number | null {
  if (before === null || held === null) return null
  return areOthers ? before + held : Math.max(before, held + recovered)
}

function boundsOf(row: LossRow, held: Held): Pick<LossRow, 'first_seq' | 'last_seq'> {
  const choose = (least: (one: number, other: number) => number, one: number | null, other: number | null) =>
    one === null || other === null ? null : least(one, other)
  return { first_seq: choose(Math.min, row.first_seq, held.first_seq), last_seq: choose(Math.max, row.last_seq, held.last_seq) }
}
