/**
 * The objects of copies that this node still needs, and the removal of the others.
 *
 * Owns: the list of objects, and what the node says of them in the store (writer-state.ts). Does not own: how they are put (copier.ts).
 * Law: an object goes once each segment that it has pieces of is delivered, as control has recorded, or is in later objects. Objects of one
 * incarnation go in the order of their numbers.
 */
import type { Clock } from '#lib/clock.ts'
import type { FindDelivered } from '#log/log-writer.ts'
import { pieceBytes, type SegmentPiece } from '#log/segment-piece.ts'
import type { SegmentRef, SegmentSource } from '#log/segment-source.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { copyName } from './copy-names.ts'
import { decodeCopy } from './copy-object.ts'
import { copyLimits } from './limits.ts'
import { putWriterState, type WriterState } from './writer-state.ts'

export type HeldObjectsOptions = {
  readonly incarnation: string
  readonly store: ObjectStore
  readonly folder: string
  readonly segments: Pick<SegmentSource, 'readLog'>
  readonly findDelivered: FindDelivered
  /** Whether an endpoint has the log. Segments of others are dropped, not delivered. */
  readonly isOwned: (logName: string) => boolean
  /** Puts pieces of an old object again. */
  readonly copy: (piece: SegmentPiece) => Promise<void>
  readonly onDelivered: (segment: string) => void
  readonly clock: Clock
}

type HeldObject = {
  readonly number: number
  readonly atMs: number
  readonly bytes: number
  readonly segments: Map<string, SegmentRef>
}

export class HeldObjects {
  readonly #options: HeldObjectsOptions
  /** By incarnation, in the order of their numbers. */
  readonly #objects = new Map<string, HeldObject[]>()
  /** As the store says: no object below these is needed. */
  #below: Readonly<Record<string, number>> = {}
  #fences = 0

  constructor(options: HeldObjectsOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#objects.values().reduce((sum, objects) => sum + objects.length, 0)
  }

  /** Bytes of the pieces in them. */
  get bytes(): number {
    let bytes = 0
    for (const objects of this.#objects.values()) for (const object of objects) bytes += object.bytes
    return bytes
  }

  /** Age of the oldest object, in milliseconds; 0 if there is none. */
  get oldestMs(): number {
    const now = this.#options.clock.monotonic()
    return this.#objects.values().reduce((oldest, [first]) => Math.max(oldest, now - (first?.atMs ?? now)), 0)
  }

  /** Returns the incarnations of earlier processes, and below which number none of their objects is needed. */
  earlier(): readonly (readonly [string, number])[] {
    return Object.entries(this.#below).filter(([incarnation]) => incarnation !== this.#options.incarnation)
  }

  /** Tells the store of this incarnation, beside those of earlier processes. */
  async register({ fences, below }: WriterState, signal: AbortSignal): Promise<void> {
    this.#fences = fences
    await this.#setBelow({ ...below, [this.#options.incarnation]: 0 }, signal)
    for (const incarnation of Object.keys(this.#below)) if (!this.#objects.has(incarnation)) this.#objects.set(incarnation, [])
  }

  /** Adds the next object of an incarnation. */
  add(incarnation: string, number: number, pieces: readonly SegmentPiece[]): void {
    const segments = new Map(pieces.map((piece) => [nameOf(piece), refOf(piece)]))
    const objects = this.#objects.get(incarnation) ?? []
    this.#objects.set(incarnation, objects)
    const bytes = pieces.reduce((sum, piece) => sum + pieceBytes(piece), 0)
    objects.push({ number, atMs: this.#options.clock.monotonic(), bytes, segments })
  }

  /** Removes what is not needed any more, the oldest first. */
  async removeDelivered(signal: AbortSignal): Promise<void> {
    await this.#noteDelivered(signal)
    await this.#carryOld(signal)
    const below = { ...this.#below }
    const removed: string[] = []
    for (const [incarnation, objects] of this.#objects) {
      const count = objects.findIndex(({ segments }) => segments.size > 0)
      const done = objects.slice(0, Math.min(count === -1 ? objects.length : count, copyLimits.removedAtOnce))
      const last = done.at(-1)
      if (last !== undefined) below[incarnation] = last.number + 1
      removed.push(...done.map(({ number }) => copyName(this.#options.folder, incarnation, number)))
    }
    if (removed.length > 0) await this.#setBelow(below, signal)
    for (const name of removed) await this.#options.store.remove(name, signal)
    for (const [incarnation, objects] of this.#objects) {
      const first = objects.findIndex(({ number }) => number >= (below[incarnation] ?? 0))
      objects.splice(0, first === -1 ? objects.length : first)
    }
    await this.#forgetEmpty(signal)
  }

  /** Forgets earlier incarnations without objects. */
  async #forgetEmpty(signal: AbortSignal): Promise<void> {
    const { incarnation: own } = this.#options
    const empty = [...this.#objects].filter(([incarnation, objects]) => incarnation !== own && objects.length === 0)
    if (empty.length === 0) return
    const below = { ...this.#below }
    for (const [incarnation] of empty) delete below[incarnation]
    await this.#setBelow(below, signal)
    for (const [incarnation] of empty) this.#objects.delete(incarnation)
  }

  async #noteDelivered(signal: AbortSignal): Promise<void> {
    const { segments, findDelivered, isOwned, onDelivered } = this.#options
    const held = new Map<string, SegmentRef>()
    for (const objects of this.#objects.values())
      for (const { segments: refs } of objects.slice(0, copyLimits.removedAtOnce))
        for (const [name, ref] of refs) held.set(name, ref)
    const absent: SegmentRef[] = []
    for (const [logName, refs] of Map.groupBy(held.values(), (ref) => ref.logName)) {
      const present = new Set((await segments.readLog(logName)).segments.map(nameOf))
      absent.push(...refs.filter((ref) => !present.has(nameOf(ref))))
    }
    if (absent.length === 0) return
    const [owned, unowned] = [absent.filter(({ logName }) => isOwned(logName)), absent.filter(({ logName }) => !isOwned(logName))]
    // A file that is gone may have been lost: only control knows that it was delivered.
    const delivered = owned.length === 0 ? [] : await findDelivered(owned, signal)
    for (const name of [...delivered, ...unowned].map(nameOf)) {
      for (const objects of this.#objects.values()) for (const object of objects) object.segments.delete(name)
      onDelivered(name)
    }
  }

  /** Puts what old objects still hold into new ones, if they keep others that are not needed any more. */
  async #carryOld(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    for (const [incarnation, objects] of this.#objects) {
      const firstDone = objects.findIndex(({ segments }) => segments.size === 0)
      for (const object of objects.slice(0, Math.min(Math.max(firstDone, 0), copyLimits.carriedAtOnce)))
        if (clock.monotonic() - object.atMs >= copyLimits.carriedAfterMs) await this.#carry(incarnation, object, signal)
    }
  }

  async #carry(incarnation: string, { number, segments }: HeldObject, signal: AbortSignal): Promise<void> {
    const { store, folder, copy } = this.#options
    const name = copyName(folder, incarnation, number)
    const object = await store.get(name, signal)
    if (object === undefined) throw new Error(`the copy store has lost ${name}`)
    const { pieces } = await decodeCopy(object)
    await Promise.all(pieces.filter((piece) => segments.has(nameOf(piece))).map(copy))
    segments.clear()
  }

  async #setBelow(below: WriterState['below'], signal: AbortSignal): Promise<void> {
    const { store, folder } = this.#options
    await putWriterState(store, folder, { version: 1, fences: this.#fences, below }, signal)
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
