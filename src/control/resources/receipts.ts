/**
 * Says what became of acknowledged records, by the receipt that ingest returned.
 *
 * Law: `lost` needs a fact: the node was removed, the endpoint was deleted, or the node said, after it delivered later segments, that it does
 * not have this one. So the report of the node is read before the commits. A disk that comes back makes it `waiting` again. So does a segment
 * in quarantine, or one that may be there: its records are on the disk until the operator discards it.
 */
import { AppError } from '#errors.ts'
import { countNoun } from '#lib/count-noun.ts'
import { namedId } from '#lib/named-id.ts'
import type { Commit } from '#model/commit.ts'
import type { Principal } from '#model/principal.ts'
import { parseReceiptId, type ReceiptOutcome } from '#model/receipt.ts'
import { findNeighbours, listSegmentCommits, type SegmentOfNode, seqsSkipped } from '#store/commits/commits.ts'
import { type FoundLoss, findLossOf } from '#store/commits/losses.ts'
import { findMissingSinceOf } from '#store/commits/missing-commits.ts'
import { assertEverExisted, findEndpoint } from '#store/endpoints/endpoints.ts'
import { findLogHolder, type LogHolder } from '#store/nodes/log-holder.ts'
import type { Db, Store } from '#store/store.ts'
import { describeQuarantine, findInQuarantine } from './receipt-quarantine.ts'
import { listRecordKeys } from './record-keys.ts'

export type Receipts = ReturnType<typeof receiptService>

type Undelivered = Pick<ReceiptOutcome, 'state' | 'reason' | 'loss_id'>

/** A report that arrived so much later than a commit was made after it. */
const reportLaterMs = 10_000

export function receiptService({ store }: { readonly store: Store }) {
  return {
    /** Throws not_found for the endpoint, and for a segment of which nothing is known. */
    async get({ account_id }: Principal, endpoint_id: string, receipt_id: string): Promise<ReceiptOutcome> {
      const { db } = store
      await assertEverExisted(db, account_id, endpoint_id)
      const receipt = parseReceiptId(receipt_id)
      if (receipt === undefined) throw new AppError('not_found', 'this is no receipt: it is <node_id>-<segment_seq>')
      const { node_id, segment_seq } = receipt
      const segment = { node_id, seq: segment_seq }
      const holder = await findLogHolder(db, endpoint_id, node_id)
      const [commit] = await listSegmentCommits(db, endpoint_id, segment)
      if (commit !== undefined) {
        const loss = await findLossOf(db, endpoint_id, segment)
        return { ...receipt, ...describeDelivery(commit, holder, loss?.partial && { id: loss.id, seqs: loss.partial }) }
      }
      const rest = { commit_id: null, delivered_at: null, keys: [] }
      const missing = await findMissingSinceOf(db, account_id, endpoint_id)
      if (missing !== null) return { ...receipt, ...rest, ...mayBeMissing(missing) }
      return { ...receipt, ...rest, ...(await explainUndelivered(db, account_id, endpoint_id, segment, holder)) }
    },
  }
}

/** A loss, and segments among which are those whose commits have fewer records than the machine that lost its place. */
type Left = { readonly id: string; readonly seqs: readonly [first: number, last: number] }

/** The commit of a segment may have fewer records than were acknowledged: the others are in quarantine, or on the disk of a machine before. */
function describeDelivery(
  commit: Commit,
  holder: LogHolder,
  left: Left | undefined,
): Omit<ReceiptOutcome, 'node_id' | 'segment_seq'> {
  const { id, node_id, seq, uploaded_at, records_damaged } = commit
  const damage = `${countNoun(records_damaged, 'record')} of the segment or more were lost to damage on the node`
  const inQuarantine = findInQuarantine(seq, holder)
  const reasons = [
    ...(records_damaged === 0 ? [] : [damage]),
    ...(left === undefined ? [] : [describeLeft(left)]),
    // Nodes of the release before do not say which segments: nearly all that are delivered are not among them.
    ...(inQuarantine === undefined || inQuarantine === 'unknown'
      ? []
      : [`it may not be all records of the segment: ${describeQuarantine(node_id, inQuarantine, holder)}`]),
  ]
  const reason = reasons.length === 0 ? null : reasons.join('; ')
  const delivered = { commit_id: id, delivered_at: uploaded_at, keys: listRecordKeys(commit) }
  return { state: 'delivered', reason, ...delivered, loss_id: left?.id ?? null }
}

function describeLeft({ seqs: [first_seq, last_seq] }: Left): string {
  const disk = 'were acknowledged by a machine that lost its place, and are only on its disk: see the loss'
  if (first_seq === last_seq) return `not all records of the segment are delivered: others ${disk}`
  return `it may not be all records of the segment: others of the segments ${first_seq} to ${last_seq} ${disk}`
}

function mayBeMissing(since: string): Undelivered {
  const reason = `commits since ${since} may be missing in the database: unless control records them within minutes, the operator has to run inlet commits rebuild`
  return { state: 'waiting', reason, loss_id: null }
}

async function explainUndelivered(
  db: Db,
  account_id: string,
  endpoint_id: string,
  segment: SegmentOfNode,
  holder: LogHolder,
): Promise<Undelivered> {
  const { seq } = segment
  const { node, held, quarantine, reported_at } = holder
  const found = await findLossOf(db, endpoint_id, segment)
  const endpoint = await findEndpoint(db, account_id, endpoint_id)
  if (!mayExist(seq, holder, found, endpoint?.region)) throw unknownSegment()
  const deleted = { state: 'lost', reason: 'the endpoint was deleted before the segment was delivered', loss_id: null } as const
  if (endpoint === undefined && (held ?? quarantine) !== undefined) return deleted
  const inQuarantine = findInQuarantine(seq, holder)
  const waiting = { state: 'waiting', reason: explainWait(segment, holder), loss_id: null } as const
  if (inQuarantine === 'certain' || (held !== undefined && (held.first_seq === null || held.first_seq <= seq))) return waiting
  // A node that is back, or another one under its id, continues the log above what was lost. So may one that was removed after its last report.
  const isCovered = found?.isMissing === true && (found.last_seq !== null || node !== 'registered')
  const loss = isCovered ? found : undefined
  const lost = (reason: string): Undelivered => ({ state: 'lost', reason, loss_id: loss?.id ?? null })
  if (loss?.state === 'open' && loss.cause === 'left_on_disk') return lost(describeLoss(loss))
  if (node === 'registered' && reported_at === undefined) return waiting
  if (loss !== undefined && loss.state !== 'recovered') return lost(describeLoss(loss))
  if (inQuarantine !== undefined) return waiting
  const { before, after } = await findNeighbours(db, endpoint_id, segment)
  const isReportLater = after !== undefined && reported_at !== undefined && Date.parse(reported_at) >= after + reportLaterMs
  if (node === 'registered' && after !== undefined && !isReportLater) return waiting
  // Commits are kept for a time, and the oldest go first. An unknown node never delivered anything.
  if (before === undefined && (after !== undefined || node === 'unknown' || wasDelivered(seq, holder, found)))
    throw unknownSegment()
  if (node !== 'registered')
    return lost(`the node was removed before it delivered the segment${describeUncounted(seq, found)}${describeDoubt(found)}`)
  if (after !== undefined)
    return lost(`the node delivered later segments, and does not have this one any more${describeDoubt(found)}`)
  if (endpoint === undefined) return deleted
  if (wasSkipped(seq, holder, found) && hasReported(holder, found))
    return lost(
      `the machine that has the place of the node now does not have the segment${describeUncounted(seq, found)}${describeDoubt(found)}`,
    )
  return waiting
}

/** Whether the machine that has the place now has reported what it holds. It continues the log above what control knew then. */
function hasReported({ replaced, reported_at }: LogHolder, found: FoundLoss | undefined): boolean {
  if (reported_at === undefined) return false
  return [replaced?.at, found?.recorded_at].every((since) => since === undefined || reported_at > since)
}

/**
 * Whether only a machine before can have begun the segment, after its last report: above its loss, or above what was known at an adoption. One that
 * adopts a log begins none. The loss may be an earlier one.
 */
function wasSkipped(seq: number, { replaced, committed_seq }: LogHolder, found: FoundLoss | undefined): boolean {
  if (seq > committed_seq) return false
  const adopted = replaced?.isAdopted === true ? committed_seq - seqsSkipped : null
  return [found?.last_seq, adopted].some((last) => last != null && seq > last && seq <= last + seqsSkipped)
}

/** Whether the node may have acknowledged the segment, as far as control can know: since its last report it may have begun others. */
function mayExist(
  seq: number,
  { node, region, highest_seq }: LogHolder,
  found: FoundLoss | undefined,
  endpointRegion: string | undefined,
): boolean {
  if (highest_seq === undefined && found === undefined) {
    if (node !== 'registered' || (endpointRegion !== undefined && endpointRegion !== region)) return false
  }
  return found?.last_seq === null || seq <= Math.max(highest_seq ?? 0, found?.last_seq ?? 0) + seqsSkipped
}

/**
 * Whether a log of which no commit is left had one of the segment: a loss around it does not name it, or the node had delivered that far, and does not
 * hold it.
 */
function wasDelivered(seq: number, holder: LogHolder, found: FoundLoss | undefined): boolean {
  const { node, highest_seq, committed_seq } = holder
  const last = found?.last_seq ?? Number.NEGATIVE_INFINITY
  if (found !== undefined && seq <= last) return !found.isMissing
  if (node === 'registered') return seq <= committed_seq && hasReported(holder, found) && !wasSkipped(seq, holder, found)
  // It may have begun others after its last report.
  return node === 'removed' && seq <= (highest_seq ?? -1) && seq > last + seqsSkipped
}

/** A machine may have begun segments above those that its loss names, and delivered them. */
function describeDoubt(loss: FoundLoss | undefined): string {
  if (loss === undefined || (loss.is_searched && loss.search_problem === null)) return ''
  const next = loss.search_problem ?? 'control still has to look there'
  return `; it may be in the bucket all the same: ${next}`
}

/** The node began the segment after the report that its loss is from. */
function describeUncounted(seq: number, loss: FoundLoss | undefined): string {
  if (loss === undefined || loss.last_seq === null || seq <= loss.last_seq) return ''
  return `; its loss has what was acknowledged by ${loss.reported_at}, and the segment is later`
}

function describeLoss(loss: FoundLoss): string {
  const { cause, recorded_at, reported_at } = loss
  const doubt = describeDoubt(loss)
  if (cause === 'left_on_disk')
    return `the records are only on the disk of a machine that lost its place to another one, before it delivered the segment${doubt}`
  const what = {
    node_removed: 'the node was removed',
    node_released: 'the id of the node was released',
    node_adopted: 'another machine adopted the log of the node',
    node_taken_over: 'the node was lost, and another one took over its copies',
  }[cause]
  const counted = `the loss counts what was acknowledged by ${reported_at}, and later records of the segment are lost as well`
  return `${what} at ${recorded_at}, before it delivered the segment; ${counted}${doubt}`
}

function explainWait(segment: SegmentOfNode, holder: LogHolder): string {
  const inQuarantine = findInQuarantine(segment.seq, holder)
  if (inQuarantine === undefined) return explainHeld(segment, holder)
  const quarantine = describeQuarantine(segment.node_id, inQuarantine, holder)
  return inQuarantine === 'certain' ? quarantine : `${explainHeld(segment, holder)}; ${quarantine}`
}

function explainHeld({ node_id }: SegmentOfNode, { name, held, reported_at }: LogHolder): string {
  const who = `node ${namedId(node_id, name)}`
  if (reported_at === undefined) return `delivery of ${who} has not reported yet`
  if (held?.blocked_by != null) return `${who}, as it reported at ${reported_at}: ${held.blocked_by}`
  return `${who} has not delivered the segment, as it reported at ${reported_at}`
}

function unknownSegment(): AppError {
  return new AppError(
    'not_found',
    'nothing is known of this segment: no node acknowledged it for this endpoint, or its commit is older than commits are kept',
  )
}
