/**
 * One request that the gate admitted, from its head to its outcome.
 *
 * Owns: the memory that it uses, the checks that are due again once its records have arrived, the append, and what is counted.
 * Does not own: the wire format, and how the protocol responds.
 * Law: a request has one outcome. It is acknowledged after fdatasync (law 1), with two copies in the copy store as well unless it asks for less,
 * and only if its sender may still send at the append.
 */
import { assert } from '#lib/assert.ts'
import type { FrameInput, Layout } from '#log/frame.ts'
import type { Appended } from '#log/log-writer.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { type AckRequest, requireLevel } from './ack-request.ts'
import { AdmittedSession, type SessionClient } from './admitted-session.ts'
import type { Allowance } from './allowance.ts'
import { appendOnce } from './append-once.ts'
import type { CommitWait, Delivered } from './commit-waits.ts'
import type { GateContext } from './context.ts'
import { awaitsCopy, requireCopyStore, whenAcknowledgeable } from './copied.ts'
import { type KeptSender, keptSenderOf } from './kept-sender.ts'
import { gateLimits } from './limits.ts'
import type { Room } from './node-room.ts'
import type { Acknowledged, Stored } from './receipt.ts'
import { requireLease, requirePlace } from './rejection.ts'
import { rethrowAsRejection, type Sender, verify } from './sender.ts'

/** Complete records, counted as `countRecords` of the log counts them. None is longer than `recordLimits.bytesMax`. */
export type Body = {
  readonly layout: Layout
  readonly records: number
  readonly payload: readonly Uint8Array[]
  readonly payloadBytes: number
}

export type Records = {
  readonly body: Body
  readonly envelope: Uint8Array
  /** By which the sender marked the request, if it may repeat it. The envelope has it, too. */
  readonly key: string | undefined
  /** Undefined: what the endpoint says. */
  readonly ack?: AckRequest | undefined
}

/** Learns the outcome: the gate calls either `acknowledge` or `reject`, once. */
export interface Responder {
  /** The append begins. */
  appending(): void
  /** The records are durable. Not called for those that had been stored before. */
  appended(appended: Appended): void
  /** The records wait for their commit, and are needed no more. */
  awaitingCommit(): void
  acknowledge(receipt: Acknowledged): void
  reject(error: unknown): void
}

/** A sender, and the endpoint that it may send to. */
export type Admission = {
  readonly sender: Sender
  readonly endpoint: SnapshotEndpoint
  readonly keyId: string
  /** The revision of the credentials that the sender was verified with. */
  readonly revision: number
}

const nothing: Acknowledged = { seq: 0, records: 0, bytes: 0, isRepeated: false, level: 'disk' }

export class Admitted {
  readonly endpoint: SnapshotEndpoint
  readonly keyId: string
  readonly #context: GateContext
  readonly #sender: Sender
  readonly #room: Room
  readonly #allowance: Allowance
  readonly #revision: number
  #reservedBytes = 0
  #isConsumed = false
  #isOver = false
  #commitWait: CommitWait | undefined
  #completeAtMs = 0

  constructor(context: GateContext, { sender, endpoint, keyId, revision }: Admission) {
    this.#context = context
    this.#sender = sender
    this.endpoint = endpoint
    this.keyId = keyId
    this.#revision = revision
    this.#room = context.rooms.room(endpoint.id)
    this.#allowance = context.allowances.of(endpoint.account_id)
  }

  /** Returns the facts about the sender that the endpoint keeps, for the envelope of its records; undefined if there are none. */
  keptSender(): KeptSender | undefined {
    // Most endpoints keep nothing: no request pays for functions that are not called.
    if (this.endpoint.kept_fields.length === 0) return undefined
    const { authenticator, clientAddresses } = this.#context
    return keptSenderOf(this.endpoint, {
      address: () => clientAddresses.find(this.#sender.remote),
      keyName: () => authenticator.keyName(this.keyId),
    })
  }

  /** Throws Rejection if there is no room for bytes that the sender announces. Reserves nothing: they may never arrive. */
  announce(bytes: number): void {
    this.#room.requireRoom(bytes)
  }

  /** Reserves memory and disk for bytes, until `end`. Throws Rejection, and reserves nothing, if there is no room. */
  reserve(bytes: number): void {
    try {
      this.#room.reserve(bytes)
    } catch (error) {
      // An endpoint that was deleted meanwhile has no share any more, but that is not what the sender should read.
      this.#recheck()
      throw error
    }
    this.#reservedBytes += bytes
  }

  /** Returns why nothing of this endpoint should be read now; undefined while there is room. */
  backpressureReason(): string | undefined {
    return this.#room.backpressureReason()
  }

  /** Lets the sender send many records, one by one, as long as its connection is open. */
  openSession(client: SessionClient): AdmittedSession {
    this.#consume()
    return new AdmittedSession(this.#context, {
      ...{ client, endpoint: this.endpoint, keyId: this.keyId, revision: this.#revision },
      ...{ protocol: this.#sender.protocol, remote: this.#sender.remote },
    })
  }

  /** Resolves with the commit of a segment of the endpoint, which any node may have: undefined if there is none in time. Rejects without room. */
  async awaitDelivery(
    segment: { readonly nodeId: string; readonly seq: number },
    waitMs: number,
  ): Promise<Delivered | undefined> {
    this.#consume()
    this.reserve(gateLimits.commitWaitBytes)
    const { id: endpointId, account_id: accountId } = this.endpoint
    this.#commitWait = this.#context.commitWaits.wait({ accountId, endpointId, ...segment }, waitMs)
    return await this.#commitWait.delivered
  }

  /** Counts a refusal of the request, or of a part of it. */
  refused(reason: string): void {
    this.#context.counts.of(this.endpoint.id).refused(reason)
  }

  /** Releases what it reserved. Call it when the outcome is known or the client is gone. */
  end(): void {
    this.#isOver = true
    this.#release()
    this.#commitWait?.end()
  }

  /**
   * Stores the records, unless the sender may send no more: the configuration may have changed while they arrived. Then the endpoint may be
   * paused, and the key revoked.
   */
  append(records: Records, responder: Responder): void {
    this.#consume()
    const { authenticator } = this.#context
    const failed = (error: unknown) => responder.reject(error)
    try {
      const verified = this.#revision === authenticator.revision ? undefined : verify(this.#sender, authenticator)
      if (!(verified instanceof Promise)) this.#append(records, responder, failed)
      else verified.then(() => this.#append(records, responder, failed), rethrowAsRejection).catch(failed)
    } catch (error) {
      failed(error)
    }
  }

  #append({ body, envelope, key, ack }: Records, responder: Responder, failed: (error: unknown) => void): void {
    // While the token was being verified again, the request may have failed or the client may have left.
    if (this.#isOver) return
    if (body.records === 0) {
      responder.acknowledge(nothing)
      return
    }
    const endpoint = this.#recheck()
    const asked = ack?.level
    requireLevel(endpoint, asked)
    const level = awaitsCopy(endpoint, asked) ? 'copied' : 'disk'
    const { log, copies, clock } = this.#context
    requireCopyStore(endpoint, copies)
    const store = async () => whenAcknowledgeable(this.#context, { endpoint, asked }, await log.append(endpoint.id, frame))
    const now = clock.now()
    this.#completeAtMs = clock.monotonic()
    const frame: FrameInput = {
      layout: body.layout,
      receivedAtMicros: now * 1000,
      recordCount: body.records,
      envelope,
      payload: body.payload,
    }
    const answer = (stored: Stored) => {
      if (asked === 'committed') this.#awaitCommit({ ...stored, level }, ack?.waitMs ?? 0, responder).catch(failed)
      else responder.acknowledge({ ...stored, level })
    }
    if (key === undefined) {
      this.#spend(body.records, now)
      responder.appending()
      const stored = level === 'copied' ? store() : log.append(endpoint.id, frame)
      stored.then((appended) => answer(this.#stored(body, appended, responder)), failed)
      return
    }
    responder.appending()
    let durable: Appended | undefined
    const append = async () => {
      this.#spend(body.records, now)
      durable = await store()
      return durable
    }
    appendOnce(this.#context, { endpoint, key, frame, asked, append }).then((stored) => {
      answer(stored.isRepeated || durable === undefined ? stored : this.#stored(body, durable, responder))
    }, failed)
  }

  /** Counts what is stored. */
  #stored({ records, payloadBytes }: Body, appended: Appended, responder: Responder): Stored {
    const { acknowledgements, counts, clock } = this.#context
    const durationMs = clock.monotonic() - this.#completeAtMs
    this.#allowance.count(records, payloadBytes)
    acknowledgements[this.#sender.protocol].observe(durationMs)
    counts.of(this.endpoint.id).accepted(1, records, payloadBytes, durationMs)
    responder.appended(appended)
    return { seq: appended.seq, records, bytes: payloadBytes, isRepeated: false }
  }

  async #awaitCommit(stored: Acknowledged, waitMs: number, responder: Responder): Promise<void> {
    // The client left.
    if (this.#isOver) return
    const { commitWaits, fence } = this.#context
    this.#release()
    this.#room.forceReserve(gateLimits.commitWaitBytes)
    this.#reservedBytes = gateLimits.commitWaitBytes
    const { id: endpointId, account_id: accountId } = this.endpoint
    this.#commitWait = commitWaits.wait({ accountId, endpointId, nodeId: stored.nodeId, seq: stored.seq }, waitMs)
    responder.awaitingCommit()
    const delivered = await this.#commitWait.delivered
    if (this.#isOver) return
    // Another machine may deliver them now, or none.
    if (delivered === undefined) requirePlace(fence)
    responder.acknowledge(delivered === undefined ? stored : { ...stored, level: 'committed', delivered })
  }

  #release(): void {
    this.#room.release(this.#reservedBytes)
    this.#reservedBytes = 0
  }

  #consume(): void {
    assert(!this.#isConsumed, 'an admitted request is appended once')
    this.#isConsumed = true
  }

  /** Returns the endpoint as it is now. Throws Rejection. */
  #recheck(): SnapshotEndpoint {
    requireLease(this.#context.lease)
    return this.#context.configuration.endpoints?.recheck(this.endpoint) ?? this.endpoint
  }

  #spend(records: number, nowMs: number): void {
    const exceeded = this.#allowance.take(records, nowMs)
    if (exceeded === undefined) return
    this.#context.allowances.countRefusal(exceeded)
    throw this.#allowance.rejection(exceeded, nowMs)
  }
}
