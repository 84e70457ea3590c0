/**
 * Restores the log of a node from its copies, on another machine.
 *
 * Owns: that the node acknowledges nothing more with a copy before its objects are read, and which objects are restored. Does not own: who may
 * take the node over, which control decides, the files that are written (log/local/piece-writer.ts), and the delivery of the log.
 * Law: what the node acknowledged with a copy is restored. The fence is there before the first object is read, so an acknowledgement that was
 * made before has its object, and none is made later. A number that is missing ends an incarnation only if the node has not removed it.
 * Objects of a delivered segment go one by one, and one that it shares with another segment stays: so a segment with a hole is left out, if control
 * knows it as delivered. One that is not delivered has lost something, and is restored to be counted. So is any one beside a damaged object of
 * records, which may be its hole: only what is removed has its idempotency keys elsewhere.
 */
import type { Clock } from '#lib/clock.ts'
import type { System } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { FindDelivered } from '#log/log-writer.ts'
import type { PieceSink, SegmentPiece } from '#log/segment-piece.ts'
import type { SegmentRef } from '#log/segment-source.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { copyName } from './copy-names.ts'
import { type CopyObject, encodeCopy, readCopy } from './copy-object.ts'
import { contiguous, type Range, rangeOf } from './earlier-copies.ts'
import { addFence } from './fences.ts'
import { nameOf, refOf } from './held-objects.ts'
import { keysLogName } from './key-copies.ts'
import { copyLimits } from './limits.ts'
import { findWriterState, forgetIncarnations } from './writer-state.ts'

export type CopyPlace = {
  readonly store: ObjectStore
  /** The folder of the node in the store, with a slash at its end. */
  readonly folder: string
}

export type RestoreOptions = CopyPlace &
  Pick<System, 'random'> & {
    readonly nodeId: string
    /** The id of the node that takes over. */
    readonly by: string
    /** Takes what is restored. */
    readonly pieces: PieceSink
    /** Says what the lost node delivered. */
    readonly findDelivered: FindDelivered
    readonly clock: Clock
    readonly logger: Logger
    readonly signal: AbortSignal
  }

/** `ranges`: the numbers of the objects, by incarnation: from the first one up to the one that closes it. */
export type Restored = {
  readonly objects: number
  readonly bytes: number
  /** Objects that could not be read: their records are not restored. */
  readonly damaged: number
  readonly ranges: Readonly<Record<string, readonly [number, number]>>
}

/** Returns whether the store has copies of the node. */
export async function hasCopies({ store, folder }: CopyPlace, signal: AbortSignal): Promise<boolean> {
  return (await findWriterState(store, folder, signal)) !== undefined
}

/** May be repeated after a failure. */
export async function restoreLog(options: RestoreOptions): Promise<Restored> {
  const { store, folder, by, pieces, signal } = options
  await addFence(store, folder, by, signal)
  const restored = { objects: 0, bytes: 0, damaged: 0 }
  const ranges: Record<string, readonly [number, number]> = {}
  const segments = new Map<string, RestoredSegment>()
  let mayLackPieces = false
  try {
    const found = await findWriterState(store, folder, signal)
    for (const incarnation of Object.keys(found?.state.below ?? {})) {
      let [isDamaged, hasKeys] = [false, false]
      for await (const { number, object } of objectsOf(options, incarnation)) {
        ranges[incarnation] = [ranges[incarnation]?.[0] ?? number, number + 1]
        restored.objects += 1
        if (object === 'damaged') {
          restored.damaged += 1
          isDamaged = true
          continue
        }
        for (const piece of object.pieces) restored.bytes += await restorePiece(options, piece, segments)
        hasKeys ||= object.pieces.some(({ logName }) => logName === keysLogName)
      }
      mayLackPieces ||= isDamaged && !hasKeys
    }
    if (!mayLackPieces) restored.bytes -= await removeDeliveredRests(options, segments)
  } finally {
    await pieces.close()
  }
  return { ...restored, ranges }
}

/** `ranges`: what was restored of it. */
type RestoredSegment = { readonly ref: SegmentRef; readonly ranges: Range[] }

/** Returns its size. */
async function restorePiece(
  { pieces }: RestoreOptions,
  piece: SegmentPiece,
  segments: Map<string, RestoredSegment>,
): Promise<number> {
  const bytes = await pieces.write(piece)
  // Any part of keys counts on its own.
  if (piece.logName === keysLogName) return bytes
  const name = nameOf(piece)
  const segment = segments.get(name) ?? { ref: refOf(piece), ranges: [] }
  addRange(segment.ranges, rangeOf(piece))
  segments.set(name, segment)
  return bytes
}

/** Removes delivered segments with a hole. Returns how many bytes they had. */
async function removeDeliveredRests(
  { pieces, findDelivered, signal }: RestoreOptions,
  segments: ReadonlyMap<string, RestoredSegment>,
): Promise<number> {
  const rests = [...segments.values()].filter(({ ranges }) => hasHole(ranges))
  let removed = 0
  for (let at = 0; at < rests.length; at += copyLimits.lookedUpAtOnce) {
    const some = rests.slice(at, at + copyLimits.lookedUpAtOnce)
    const refs = some.map(({ ref }) => ref)
    const delivered = new Set((await findDelivered(refs, signal)).map(nameOf))
    for (const { ref, ranges } of some.filter((rest) => delivered.has(nameOf(rest.ref)))) {
      await pieces.remove(ref)
      removed += ranges.reduce((sum, range) => sum + range.end - range.at, 0)
    }
  }
  return removed
}

/** A log has millions of pieces, nearly all of them behind the one before. */
function addRange(ranges: Range[], range: Range): void {
  const last = ranges.at(-1)
  if (last?.end === range.at) ranges.splice(-1, 1, { at: last.at, end: range.end })
  else ranges.push(range)
}

function hasHole(ranges: readonly Range[]): boolean {
  const whole = contiguous(ranges)
  return ranges.some(({ at }) => at > whole)
}

/**
 * Returns how to remove what was restored, once all of it is delivered: each call goes on where the one before failed. The fences stay, and the
 * objects that close incarnations.
 */
export function removalOf(
  { store, folder }: CopyPlace,
  { ranges }: Pick<Restored, 'ranges'>,
): (signal: AbortSignal) => Promise<void> {
  const left = new Map(Object.entries(ranges))
  return async (signal) => {
    // The last one first: a machine that takes over in between finds those that are left.
    for (const [incarnation, [first, end]] of left)
      for (let number = end - 1; number >= first; number -= 1) {
        await store.remove(copyName(folder, incarnation, number), signal)
        left.set(incarnation, [first, number])
      }
    await forgetIncarnations(store, folder, Object.keys(ranges), signal)
  }
}

/** Yields the objects up to the first number that was never stored, and takes that number, so that a late put of the node finds it. */
async function* objectsOf(
  options: RestoreOptions,
  incarnation: string,
): AsyncGenerator<{ readonly number: number; readonly object: CopyObject | 'damaged' }> {
  const { store, folder, logger, signal } = options
  for (let number = (await belowOf(options, incarnation)) ?? 0; ; ) {
    const object = await readCopy(store, folder, { incarnation, number }, signal)
    if (object === undefined) {
      const next = await findNext(options, incarnation, number)
      if (next === undefined && (await close(options, incarnation, number))) return
      number = next ?? number
      continue
    }
    if (object !== 'damaged' && object.kind === 'closing') return
    if (object === 'damaged')
      logger.error(
        { object: copyName(folder, incarnation, number) },
        'an object of copies is damaged: its records are not restored',
      )
    yield { number, object }
    number += 1
  }
}

async function belowOf({ store, folder, signal }: RestoreOptions, incarnation: string): Promise<number | undefined> {
  return (await findWriterState(store, folder, signal))?.state.below[incarnation]
}

/** Returns the number to go on with after one that is missing: the node may have removed it meanwhile. Undefined if it was never stored. */
async function findNext(options: RestoreOptions, incarnation: string, missing: number): Promise<number | undefined> {
  const below = (await belowOf(options, incarnation)) ?? 0
  return below > missing ? below : undefined
}

/** Returns false if the node has stored the number meanwhile. */
async function close(
  { nodeId, store, folder, clock, random, signal }: RestoreOptions,
  incarnation: string,
  number: number,
): Promise<boolean> {
  const writer = random.bytes(16).toString('hex')
  const closing = { kind: 'closing', nodeId, incarnation, number, writer, createdAtMicros: clock.now() * 1_000 } as const
  const options = { contentType: 'application/octet-stream', metadata: {}, signal }
  return await store.putIfAbsent(copyName(folder, incarnation, number), await encodeCopy(closing, []), options)
}
