/**
 * The objects of copies that this node still needs, and the removal of the others.
 *
 * Owns: the list of objects, and what the node says of them in the store (writer-state.ts). Does not own: how they are put (copier.ts).
 * Law: an object goes once each segment that it has pieces of is delivered, as control has recorded, or is in later objects. Objects of one
 * incarnation go in the order of their numbers.
 */
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { FindDelivered } from '#log/log-writer.ts'
import { pieceBytes, type SegmentPiece } from '#log/segment-piece.ts'
import type { SegmentRef, SegmentSource } from '#log/segment-source.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { copyName } from './copy-names.ts'
import { readCopy } from './copy-object.ts'
import { keysLogName } from './key-copies.ts'
import { copyLimits } from './limits.ts'
import { type NumberedState, putWriterState, type WriterState } from './writer-state.ts'

export type HeldObjectsOptions = {
  /** The incarnations of this process. */
  readonly incarnations: readonly string[]
  readonly store: ObjectStore
  readonly folder: string
  readonly segments: Pick<SegmentSource, 'readLog'>
  readonly findDelivered: FindDelivered
  /** Whether an endpoint has the log. Segments of others are dropped, not delivered. */
  readonly isOwned: (logName: string) => boolean
  /** Puts pieces of an old object again. */
  readonly copy: (piece: SegmentPiece) => Promise<void>
  readonly onDelivered: (segment: string) => void
  /** Puts the idempotency keys of delivered segments into the store. Returns those of which all are there. */
  readonly keepKeys: (delivered: readonly SegmentRef[]) => Promise<readonly SegmentRef[]>
  /** Whether keys of that hour since 1970 are needed. */
  readonly knowsKeys: (hour: number) => boolean
  /** The store has lost or damaged pieces of the segment. */
  readonly onLost: (segment: SegmentRef) => void
  readonly clock: Clock
  readonly logger: Logger
}

/** `first`: the first object that may be needed for it. */
type HeldSegment = { readonly ref: SegmentRef; first: number; bytes: number }

type StoredObject = { readonly bytes: number; readonly atMs: number }

/** The objects from `below` on, without a gap. */
class Incarnation {
  below: number
  /** Whether it has idempotency keys, and no records. */
  hasKeys = false
  readonly objects: StoredObject[] = []
  readonly segments = new Map<string, HeldSegment>()
  /** Segments of which the store has lost an object: what is left of them stays until they are copied again. */
  readonly lost = new Map<string, Pick<HeldSegment, 'ref' | 'first'>>()

  constructor(below: number) {
    this.below = below
  }

  /** Below which number none is needed. */
  needed(): number {
    let first = this.below + this.objects.length
    for (const segment of this.segments.values()) first = Math.min(first, segment.first)
    for (const segment of this.lost.values()) first = Math.min(first, segment.first)
    return first
  }

  /** Whether more than half of what is stored is not needed any more, and the rest can be read. */
  mayBeCarried(): boolean {
    if (this.hasKeys || this.lost.size > 0) return false
    const stored = this.objects.reduce((sum, { bytes }) => sum + bytes, 0)
    let needed = 0
    for (const { bytes } of this.segments.values()) needed += bytes
    return needed * 2 < stored
  }
}

export class HeldObjects {
  readonly #options: HeldObjectsOptions
  readonly #incarnations = new Map<string, Incarnation>()
  /** Delivered, as control has recorded, and keys of them are not in the store. */
  readonly #lackingKeys = new Map<string, SegmentRef>()
  /** As the store says: no object below these is needed. */
  #below: Readonly<Record<string, number>> = {}
  #fences = 0
  /** The number of the next state that is put. */
  #stateNumber = 0

  constructor(options: HeldObjectsOptions) {
    this.#options = options
  }

  /** How many have records. Those with idempotency keys are small, and stay for a day. */
  get count(): number {
    return this.#withRecords().length
  }

  /** Bytes of the pieces in them. */
  get bytes(): number {
    return this.#withRecords().reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Age of the oldest of them, in milliseconds; 0 if there is none. */
  get oldestMs(): number {
    const now = this.#options.clock.monotonic()
    return this.#withRecords().reduce((oldest, { atMs }) => Math.max(oldest, now - atMs), 0)
  }

  /** Returns the segments of which they have pieces. */
  refs(): readonly SegmentRef[] {
    const refs = new Map<string, SegmentRef>()
    for (const { segments, lost } of this.#incarnations.values())
      for (const [name, { ref }] of [...lost, ...segments]) refs.set(name, ref)
    return [...refs.values()]
  }

  /** Returns the incarnations of earlier processes, and below which number none of their objects is needed. */
  earlier(): readonly (readonly [string, number])[] {
    return Object.entries(this.#below).filter(([incarnation]) => !this.#options.incarnations.includes(incarnation))
  }

  /** Tells the store of the incarnations of this process, beside those of earlier ones. */
  async register({ number, state: { fences, below } }: NumberedState, signal: AbortSignal): Promise<void> {
    this.#stateNumber = number
    this.#fences = fences
    const own = Object.fromEntries(this.#options.incarnations.map((incarnation) => [incarnation, 0]))
    await this.#setBelow({ ...below, ...own }, signal)
    for (const [incarnation, from] of Object.entries(this.#below))
      if (!this.#incarnations.has(incarnation)) this.#incarnations.set(incarnation, new Incarnation(from))
  }

  /** Adds the next object of an incarnation. */
  add(incarnation: string, number: number, pieces: readonly SegmentPiece[]): void {
    const held = this.#incarnations.get(incarnation) ?? new Incarnation(number)
    this.#incarnations.set(incarnation, held)
    let total = 0
    for (const piece of pieces) {
      const bytes = pieceBytes(piece)
      const segment = held.segments.get(nameOf(piece))
      if (segment === undefined) held.segments.set(nameOf(piece), { ref: refOf(piece), first: number, bytes })
      else segment.bytes += bytes
      total += bytes
    }
    if (pieces.some(({ logName }) => logName === keysLogName)) held.hasKeys = true
    held.objects.push({ bytes: total, atMs: this.#options.clock.monotonic() })
  }

  /** A segment that had lost an object is in later ones as a whole. */
  copiedAgain(segment: string): void {
    for (const { lost } of this.#incarnations.values()) lost.delete(segment)
  }

  /** Removes what is not needed any more, the oldest first. */
  async removeDelivered(signal: AbortSignal): Promise<void> {
    await this.#noteDelivered(signal)
    for (const [incarnation, held] of this.#incarnations) await this.#carryOld(incarnation, held, signal)
    const below = { ...this.#below }
    const removed: string[] = []
    for (const [incarnation, held] of this.#incarnations) {
      const end = Math.min(held.needed(), held.below + copyLimits.removedAtOnce)
      for (let number = held.below; number < end; number += 1) removed.push(copyName(this.#options.folder, incarnation, number))
      below[incarnation] = end
    }
    if (removed.length > 0) await this.#setBelow(below, signal)
    for (const name of removed) await this.#options.store.remove(name, signal)
    for (const [incarnation, held] of this.#incarnations) {
      const end = below[incarnation] ?? held.below
      held.objects.splice(0, end - held.below)
      held.below = end
    }
    await this.#forgetEmpty(signal)
  }

  /** Forgets earlier incarnations without objects. */
  async #forgetEmpty(signal: AbortSignal): Promise<void> {
    const { incarnations: own } = this.#options
    const empty = [...this.#incarnations].filter(
      ([incarnation, { objects }]) => !own.includes(incarnation) && objects.length === 0,
    )
    if (empty.length === 0) return
    const below = { ...this.#below }
    for (const [incarnation] of empty) delete below[incarnation]
    await this.#setBelow(below, signal)
    for (const [incarnation] of empty) this.#incarnations.delete(incarnation)
  }

  async #noteDelivered(signal: AbortSignal): Promise<void> {
    const { findDelivered, isOwned, onDelivered, keepKeys, knowsKeys } = this.#options
    const refs = this.refs()
    const absent = await this.#findAbsent(
      refs.filter((ref) => ref.logName !== keysLogName && !this.#lackingKeys.has(nameOf(ref))),
    )
    const dropped = absent.filter(({ logName }) => !isOwned(logName))
    // A file that is gone may have been lost: only control knows that it was delivered.
    const owned = absent.filter(({ logName }) => isOwned(logName))
    for (let at = 0; at < owned.length; at += copyLimits.lookedUpAtOnce)
      for (const ref of await findDelivered(owned.slice(at, at + copyLimits.lookedUpAtOnce), signal))
        this.#lackingKeys.set(nameOf(ref), ref)
    const delivered = await keepKeys([...this.#lackingKeys.values()])
    const old = refs.filter(({ logName, seq: hour }) => logName === keysLogName && !knowsKeys(hour))
    for (const name of [...delivered, ...dropped, ...old].map(nameOf)) {
      this.#lackingKeys.delete(name)
      for (const { segments, lost } of this.#incarnations.values()) {
        segments.delete(name)
        lost.delete(name)
      }
      onDelivered(name)
    }
  }

  /** Returns the segments whose files are gone. Those of a log that cannot be listed stay. */
  async #findAbsent(held: readonly SegmentRef[]): Promise<readonly SegmentRef[]> {
    const { segments, logger } = this.#options
    const absent: SegmentRef[] = []
    for (const [logName, refs] of Map.groupBy(held, (ref) => ref.logName)) {
      try {
        const present = new Set((await segments.readLog(logName)).segments.map(nameOf))
        absent.push(...refs.filter((ref) => !present.has(nameOf(ref))))
      } catch (error) {
        logger.warn({ log: logName, reason: errorMessage(error) }, 'a log cannot be listed: its copies stay')
      }
    }
    return absent
  }

  /** Puts what old objects still hold into new ones, if they keep more that is not needed any more. */
  async #carryOld(incarnation: string, held: Incarnation, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    for (let carried = 0; carried < copyLimits.carriedAtOnce && held.mayBeCarried(); carried += 1) {
      const number = held.needed()
      const object = held.objects[number - held.below]
      if (object === undefined || clock.monotonic() - object.atMs < copyLimits.carriedAfterMs) return
      await this.#carry(incarnation, held, number, signal)
    }
  }

  async #carry(incarnation: string, held: Incarnation, number: number, signal: AbortSignal): Promise<void> {
    const { store, folder, copy, onLost, logger } = this.#options
    const name = copyName(folder, incarnation, number)
    const read = await readCopy(store, folder, { incarnation, number }, signal)
    if (read === undefined || read === 'damaged') {
      logger.error({ object: name }, 'the copy store has lost an object: its segments are copied again')
      for (const [segment, { ref, first }] of held.segments) {
        if (first > number) continue
        held.segments.delete(segment)
        held.lost.set(segment, { ref, first: number + 1 })
        onLost(ref)
      }
      return
    }
    const needed = read.pieces.filter((piece) => held.segments.has(nameOf(piece)))
    await Promise.all(needed.map(copy))
    for (const piece of needed) {
      const segment = held.segments.get(nameOf(piece))
      if (segment !== undefined) segment.bytes -= pieceBytes(piece)
    }
    for (const segment of held.segments.values()) segment.first = Math.max(segment.first, number + 1)
    for (const [segment, { bytes }] of held.segments) if (bytes <= 0) held.segments.delete(segment)
  }

  #withRecords(): readonly StoredObject[] {
    return [...this.#incarnations.values()].flatMap(({ hasKeys, objects }) => (hasKeys ? [] : objects))
  }

  async #setBelow(below: WriterState['below'], signal: AbortSignal): Promise<void> {
    const { store, folder } = this.#options
    const { number } = await putWriterState(
      store,
      folder,
      { number: this.#stateNumber, state: { fences: this.#fences, below } },
      signal,
    )
    this.#stateNumber = number + 1
    this.#below = below
  }
}

/** Without the bytes of a piece, or the state of a segment. */
export function refOf({ logName, seq, incarnation }: SegmentRef): SegmentRef {
  return { logName, seq, incarnation }
}

export function nameOf({ logName, seq, incarnation }: SegmentRef): string {
  return `${logName}/${seq}-${incarnation}`
}
