/**
 * A connection that the gate admitted, over which a client sends many records, one by one.
 *
 * Owns: which records are acknowledged together, the memory that they use, and what is counted; that a sender that may send no more stores
 * nothing. Does not own: the wire format, and how the protocol acknowledges.
 * Law: `stored` is called after fdatasync (law 1), for batches in the order in which their records arrived [MQTT-4.6.0-2]: one that waits for
 * its copy or its commit holds back those after it.
 */
import type { FrameInput } from '#log/frame.ts'
import type { Appended } from '#log/log-writer.ts'
import type { AckLevel } from '#model/ack-level.ts'
import { recordLimits } from '#model/limits.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { type AckRequest, readAckRequest, requireLevel } from './ack-request.ts'
import type { Allowance, NodeQuota } from './allowance.ts'
import { appendOnce } from './append-once.ts'
import type { Remote } from './client-addresses.ts'
import type { CommitWait } from './commit-waits.ts'
import type { GateContext } from './context.ts'
import { awaitsCopy, needsCopy, requireCopyStore, whenAcknowledgeable } from './copied.ts'
import { readIdempotencyKey } from './idempotency-key.ts'
import { type KeptSender, keptSenderOf } from './kept-sender.ts'
import { gateLimits } from './limits.ts'
import type { Room } from './node-room.ts'
import type { Stored } from './receipt.ts'
import { Rejection, requireLease, requirePlace } from './rejection.ts'
import type { Protocol } from './sender.ts'

/** `nodeId`: the lost node that stored it before. */
type Kept = Appended & Pick<Stored, 'nodeId'>

/** Records that became durable, or were lost, together. */
export type Batch = {
  readonly promise: Promise<unknown>
  /** The level that their sender asks for, if any; a rejection if there is none like that. */
  readonly asked: AckRequest | Rejection | undefined
  /** Said by their acknowledgement, once they are stored. */
  level: AckLevel
  /** When its first record was complete, by the clock that never goes back. */
  readonly completeAtMs: number
  /** Its records are counted, since they are durable. */
  isCounted: boolean
  /** Ids of the records that the client wants to be acknowledged. */
  readonly ids: number[]
  records: number
  payloadBytes: number
  /** Bytes of the room that its records use. */
  bytes: number
}

/** Learns the outcome of the records: the gate calls one of these for each batch, once. */
export interface SessionClient {
  /** The records are durable. */
  stored(batch: Batch): void
  lost(batch: Batch, rejection: Rejection): void
}

export type SessionAdmission = {
  readonly client: SessionClient
  readonly endpoint: SnapshotEndpoint
  readonly keyId: string
  readonly revision: number
  readonly protocol: Protocol
  readonly remote: Remote
}

export type SessionRecord = {
  readonly envelope: Uint8Array
  readonly payload: Uint8Array
  /** By which the sender marked the record, if it may repeat it. The envelope has it, too. */
  readonly key: string | undefined
  /** The level of acknowledgement that the sender asks for, as it names it. Undefined: what the endpoint says. */
  readonly ack?: string | undefined
}

export class AdmittedSession {
  readonly keyId: string
  /** Memory and disk of the endpoint, for bytes that are not a record yet. */
  readonly room: Room
  readonly #context: GateContext
  readonly #client: SessionClient
  readonly #protocol: Protocol
  readonly #allowance: Allowance
  readonly #remote: Remote
  /** As of the connection: the key may be revoked later. */
  readonly #keyName: string | undefined
  #keptSender: KeptSender | undefined
  #endpoint: SnapshotEndpoint
  #revision: number
  /** The key was revoked so that open connections stay. */
  #outlivesKey = false
  /** Why the sender may send no more, since the last change of the configuration. */
  #refusal: Rejection | undefined
  #exceeded: NodeQuota = 'records_per_second'
  #batch: Batch | undefined
  /** Settles after the last batch, while one with a key or a copy is in flight: it may be acknowledged later than those after it. */
  #unordered: Promise<unknown> | undefined
  #ack: { readonly text: string; readonly endpoint: SnapshotEndpoint; readonly asked: AckRequest | Rejection } | undefined
  readonly #commitWaits = new Set<CommitWait>()
  #hasEnded = false
  #records = 0
  #bytes = 0

  constructor(context: GateContext, { client, endpoint, keyId, revision, protocol, remote }: SessionAdmission) {
    this.#context = context
    this.#client = client
    this.#protocol = protocol
    this.#endpoint = endpoint
    this.#revision = revision
    this.#allowance = context.allowances.of(endpoint.account_id)
    this.keyId = keyId
    this.room = context.rooms.room(endpoint.id)
    this.#remote = remote
    this.#keyName = context.authenticator.keyName(keyId)
    this.#keptSender = this.#findKeptSender()
  }

  /** As the last recheck found it. */
  get endpoint(): SnapshotEndpoint {
    return this.#endpoint
  }

  /** Facts about the sender that the endpoint keeps, for the envelope of a record. The same object until they change; undefined if there are none. */
  get keptSender(): KeptSender | undefined {
    if (this.#revision !== this.#context.authenticator.revision) this.recheck()
    return this.#keptSender
  }

  /** Records that are not durable yet. */
  get recordsInFlight(): number {
    return this.#records
  }

  /** Includes the envelope and the overhead of each record. */
  get bytesInFlight(): number {
    return this.#bytes
  }

  /** Returns why the sender may send no more under the newest configuration; undefined if it may. Call it at each change: the connection should end. */
  recheck(): Rejection | undefined {
    this.#revision = this.#context.authenticator.revision
    this.#refusal = this.#findRefusal()
    return this.#refusal
  }

  /**
   * Takes a record. `id` is 0 if no acknowledgement is wanted, `receivedAtMicros` is since 1970 UTC. Returns false if the record is refused,
   * for the reason that `refusal` returns. Throws Rejection if it is too large.
   */
  append({ envelope, payload, key, ack }: SessionRecord, id: number, receivedAtMicros: number): boolean {
    if (payload.length > recordLimits.bytesMax) {
      throw new Rejection('record_too_large', `a message is longer than ${recordLimits.bytesMax} bytes`)
    }
    if (!this.#maySend(receivedAtMicros / 1000)) return false
    // Bytes that were already read are counted even above the bounds. The envelope may be larger than the payload.
    const bytes = payload.length + envelope.length + gateLimits.recordOverheadBytes
    this.room.forceReserve(bytes)
    this.#bytes += bytes
    this.#records += 1
    const frame: FrameInput = { layout: 'single', receivedAtMicros, recordCount: 1, envelope, payload: [payload] }
    const asked = ack === undefined ? undefined : this.#readAck(ack)
    const promise = this.#store(frame, key, asked)
    let batch = this.#batch
    if (batch?.promise !== promise || batch.asked !== asked) batch = this.#openBatch(promise, key, asked)
    batch.records += 1
    batch.payloadBytes += payload.length
    batch.bytes += bytes
    if (id > 0) batch.ids.push(id)
    return true
  }

  /** Nobody waits for commits any more: the connection is gone. */
  end(): void {
    this.#hasEnded = true
    for (const wait of this.#commitWaits) wait.end()
  }

  /** Returns why the last record was refused. Apart from `append`, because a client may send thousands of those. */
  refusal(nowMs: number): Rejection {
    return this.#refusal ?? this.#allowance.rejection(this.#exceeded, nowMs)
  }

  /** Takes a record from what the account may send. Counts a refusal. */
  #maySend(nowMs: number): boolean {
    const { authenticator, lease, copies, allowances } = this.#context
    const mayHaveChanged = lease.refusal !== undefined || (needsCopy(this.#endpoint) && copies.refusal !== undefined)
    if (this.#revision !== authenticator.revision || mayHaveChanged || this.#refusal?.outcome === 'not_copied') this.recheck()
    if (this.#refusal !== undefined) {
      this.#countRefused(this.#refusal, 1)
      return false
    }
    const exceeded = this.#allowance.take(1, nowMs)
    if (exceeded === undefined) return true
    this.#exceeded = exceeded
    allowances.countRefusal(exceeded)
    this.#context.counts.of(this.#endpoint.id).refused('quota_exceeded')
    return false
  }

  #findRefusal(): Rejection | undefined {
    const { configuration, fence, lease, copies, authenticator } = this.#context
    const { kept_fields } = this.#endpoint
    try {
      requirePlace(fence)
      requireLease(lease)
      this.#endpoint = configuration.endpoints?.recheck(this.#endpoint) ?? this.#endpoint
      requireCopyStore(this.#endpoint, copies)
      if (kept_fields.join() !== this.#endpoint.kept_fields.join()) this.#keptSender = this.#findKeptSender()
    } catch (error) {
      if (error instanceof Rejection) return error
      throw error
    }
    const status = authenticator.keyStatus(this.keyId)
    if (status === 'expiring') this.#outlivesKey = true
    const hasAccess = status !== 'ended' && (status !== 'unknown' || this.#outlivesKey)
    return hasAccess ? undefined : new Rejection('unauthorized', 'the API key was revoked; connect with another one')
  }

  #findKeptSender(): KeptSender | undefined {
    return keptSenderOf(this.#endpoint, {
      address: () => this.#context.clientAddresses.find(this.#remote),
      keyName: () => this.#keyName,
    })
  }

  /** Returns the same object as for the record before if nothing changed, so that they are acknowledged together. */
  #readAck(text: string): AckRequest | Rejection {
    if (this.#ack?.text === text && this.#ack.endpoint === this.#endpoint) return this.#ack.asked
    const asked = readAck(text, this.#endpoint)
    this.#ack = { text, endpoint: this.#endpoint, asked }
    return asked
  }

  #store(frame: FrameInput, key: string | undefined, asked: Batch['asked']): Promise<Kept> {
    if (asked instanceof Rejection) return Promise.reject(asked)
    if (key === undefined) return this.#context.log.append(this.#endpoint.id, frame)
    return this.#appendOnce(key, frame, asked?.level)
  }

  #openBatch(promise: Promise<Kept>, key: string | undefined, asked: Batch['asked']): Batch {
    const endpoint = this.#endpoint
    const refused = asked instanceof Rejection
    const ack = refused ? undefined : asked
    const awaits = awaitsCopy(endpoint, ack?.level)
    // Otherwise those after it may be acknowledged first.
    const isOrdered = key === undefined && !refused && !awaits && ack?.level !== 'committed'
    const earlier = this.#unordered ?? (isOrdered ? undefined : this.#batch?.promise)
    const completeAtMs = this.#context.clock.monotonic()
    const level = awaits ? 'copied' : 'disk'
    const batch: Batch = {
      ...{ promise, asked, level, completeAtMs, isCounted: false },
      ...{ ids: [], records: 0, payloadBytes: 0, bytes: 0 },
    }
    this.#batch = batch
    // Records that are appended together have one promise, and get one here.
    const stored: Promise<Kept> =
      awaits && key === undefined
        ? promise.then((appended) => whenAcknowledgeable(this.#context, { endpoint, asked: ack?.level }, appended))
        : promise
    const settles = ack?.level === 'committed' ? stored.then((kept) => this.#awaitCommit(batch, kept, ack.waitMs)) : stored
    this.#follow(batch, isOrdered && earlier === undefined ? settles : this.#after(earlier, settles))
    return batch
  }

  async #appendOnce(key: string, frame: FrameInput, asked: AckLevel | undefined): Promise<Kept> {
    const endpoint = this.#endpoint
    const append = async () =>
      whenAcknowledgeable(this.#context, { endpoint, asked }, await this.#context.log.append(endpoint.id, frame))
    return await appendOnce(this.#context, { endpoint, key: readIdempotencyKey(key), frame, asked, append })
  }

  async #awaitCommit(batch: Batch, { nodeId, seq }: Kept, waitMs: number): Promise<void> {
    const { commitWaits, fence } = this.#context
    this.#durable(batch, gateLimits.commitWaitBytes)
    const { id: endpointId, account_id: accountId } = this.#endpoint
    const wait = commitWaits.wait({ accountId, endpointId, nodeId, seq }, waitMs)
    if (this.#hasEnded) wait.end()
    this.#commitWaits.add(wait)
    const delivered = await wait.delivered
    this.#commitWaits.delete(wait)
    if (delivered === undefined) requirePlace(fence)
    else batch.level = 'committed'
  }

  /** Resolves as `promise` does, but not before what came earlier has settled. */
  #after(earlier: Promise<unknown> | undefined, promise: Promise<unknown>): Promise<unknown> {
    const settled = Promise.allSettled([earlier, promise])
    this.#unordered = settled
    void settled.then(() => {
      if (this.#unordered === settled) this.#unordered = undefined
    })
    return settled.then(() => promise)
  }

  #follow(batch: Batch, settles: Promise<unknown>): void {
    settles.then(
      () => {
        this.#durable(batch, 0)
        this.#records -= batch.records
        this.#client.stored(batch)
      },
      (error: unknown) => {
        const rejection = this.#context.rejectionOf(error)
        this.#hold(batch, 0)
        this.#records -= batch.records
        this.#countRefused(rejection, batch.records)
        this.#client.lost(batch, rejection)
      },
    )
  }

  /** Counts the records of a batch, once. From now on it takes only so much memory. */
  #durable(batch: Batch, bytes: number): void {
    this.#hold(batch, bytes)
    if (batch.isCounted) return
    batch.isCounted = true
    const { acknowledgements, counts, clock } = this.#context
    const { records, payloadBytes, completeAtMs } = batch
    const durationMs = clock.monotonic() - completeAtMs
    acknowledgements[this.#protocol].observe(durationMs, records)
    this.#allowance.count(records, payloadBytes)
    counts.of(this.#endpoint.id).accepted(records, records, payloadBytes, durationMs)
  }

  /** Changes the memory of a batch, which takes no more records. */
  #hold(batch: Batch, bytes: number): void {
    if (this.#batch === batch) this.#batch = undefined
    this.#bytes += bytes - batch.bytes
    this.room.release(batch.bytes)
    if (bytes > 0) this.room.forceReserve(bytes)
    batch.bytes = bytes
  }

  #countRefused({ outcome }: Rejection, records: number): void {
    this.#context.counts.of(this.#endpoint.id).refused(outcome, records)
  }
}

function readAck(text: string, endpoint: SnapshotEndpoint): AckRequest | Rejection {
  try {
    const ack = readAckRequest(text, undefined)
    requireLevel(endpoint, ack.level)
    return ack
  } catch (error) {
    if (error instanceof Rejection) return error
    throw error
  }
}
