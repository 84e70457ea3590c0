/**
 * The room that an endpoint has on this node: its share of the request memory and of the disk.
 *
 * Owns: which share refuses, and what the sender is told. Does not own: how shares are divided (fair-shares.ts), whether the node
 * accepts data at all (node-room.ts).
 * Law: bytes in memory also count as bytes on disk, where they are about to be. A message names the bound, and nothing of other accounts.
 */
import type { Bound, Share } from './fair-shares.ts'
import { gateLimits } from './limits.ts'
import { type Rejection, tryAgain } from './rejection.ts'

export type Resource = 'memory' | 'disk'

/** State and counters that the rooms of a node share. */
export interface NodeState {
  /** Returns why the node rejects all data; undefined while it accepts data. */
  refusalReason(): string | undefined
  countRefusal(resource: Resource, bound: Bound): void
}

const texts: Readonly<Record<Resource, Readonly<Record<Bound, string>>>> = {
  memory: {
    endpoint: 'the endpoint uses up its share of the request memory of this node',
    account: 'the account uses up its share of the request memory of this node',
    node: 'this node has too many request bytes in memory',
  },
  disk: {
    endpoint: 'the endpoint uses up its share of the disk of this node until its data is delivered; see its status',
    account:
      'the account uses up its share of the disk of this node until its data is delivered; see the status of its endpoints',
    node: 'the disk budget of this node is used up',
  },
}

export class EndpointRoom {
  readonly #memory: Share
  readonly #disk: Share
  readonly #unread: Share
  readonly #node: NodeState
  /** Size of the last request that the disk had no room for. */
  #refusedBytes = 0

  constructor(shares: { readonly memory: Share; readonly disk: Share; readonly unread: Share; readonly node: NodeState }) {
    this.#memory = shares.memory
    this.#disk = shares.disk
    this.#unread = shares.unread
    this.#node = shares.node
  }

  /** Throws a Rejection if there is no room for `bytes` more. Reserves nothing: a client that announces bytes may never send them. */
  requireRoom(bytes: number): void {
    const reason = this.#node.refusalReason()
    if (reason !== undefined) throw tryAgain('no_room', reason, gateLimits.retryDiskSeconds)
    const onDisk = this.#disk.boundOn(bytes)
    if (onDisk !== undefined) throw this.#diskRefusal(bytes, onDisk)
    const inMemory = this.#memory.boundOn(bytes)
    if (inMemory !== undefined) throw this.#refusal('memory', inMemory)
  }

  /** Throws a Rejection, and reserves nothing, if there is no room for `bytes` more. */
  reserve(bytes: number): void {
    const inMemory = this.#memory.take(bytes)
    if (inMemory !== undefined) throw this.#refusal('memory', inMemory)
    const onDisk = this.#disk.take(bytes)
    if (onDisk === undefined) return
    this.#memory.release(bytes)
    throw this.#diskRefusal(bytes, onDisk)
  }

  /** Reserves room for bytes that were already read, even above the bounds. Callers stop reading while there is a `backpressureReason`. */
  forceReserve(bytes: number): void {
    this.#memory.force(bytes)
    this.#disk.force(bytes)
  }

  release(bytes: number): void {
    this.#memory.release(bytes)
    this.#disk.release(bytes)
  }

  /**
   * Changes by `bytes` what connections hold that wait to be read on. Returns false, and changes nothing, if they hold too much. Apart
   * from request memory: there, bytes that wait for memory would keep the memory that they wait for.
   */
  tryHold(bytes: number): boolean {
    if (bytes <= 0) this.#unread.release(-bytes)
    else if (this.#unread.take(bytes) !== undefined) return false
    return true
  }

  /** Returns why connections to this endpoint must not be read now; undefined while there is room. */
  backpressureReason(): string | undefined {
    // At half of the share, so that the other half is left for data that was already read.
    if (this.#memory.isHalfUsed) return texts.memory[this.#memory.boundOn(this.#memory.used) ?? 'node']
    const onDisk = this.#disk.boundOn(0)
    return onDisk === undefined ? this.#node.refusalReason() : texts.disk[onDisk]
  }

  /** Returns why the disk has no room for what it refused last, although it may have room for others; undefined if there is room. */
  diskShareReason(): string | undefined {
    const bound = this.#disk.boundOn(this.#refusedBytes)
    return bound === undefined || bound === 'node' ? undefined : texts.disk[bound]
  }

  #diskRefusal(bytes: number, bound: Bound): Rejection {
    this.#refusedBytes = bytes
    return this.#refusal('disk', bound)
  }

  #refusal(resource: Resource, bound: Bound): Rejection {
    this.#node.countRefusal(resource, bound)
    const seconds = resource === 'memory' ? gateLimits.retryMemorySeconds : gateLimits.retryDiskSeconds
    return tryAgain('no_room', texts[resource][bound], seconds)
  }
}
