/**
 * Finds out why an attempt failed: because of the node, of damage, or of its content.
 *
 * Law: the content is the cause only if the node converts something else right after.
 */
import type { Logger } from '#lib/telemetry.ts'
import { SegmentError } from '#log/segment-error.ts'
import type { SegmentRef, SegmentSource } from '#log/segment-source.ts'
import { ConversionCrashed } from './build/failures.ts'
import { isTransient } from './build/transient-error.ts'
import type { Outcome } from './policy.ts'

/** `probe` converts something else, and throws if that fails. */
export async function examine(error: unknown, probe: () => Promise<void>): Promise<Outcome> {
  return isTransient(error) ? { kind: 'fault', error } : prove(error, probe)
}

export type Examined = {
  readonly segments: SegmentSource
  readonly segment: SegmentRef
  /** The id of its commit. */
  readonly id: string
  readonly probe: () => Promise<void>
  readonly logger: Logger
}

export async function examineSegment(error: unknown, examined: Examined): Promise<Outcome> {
  const { segments, segment, probe } = examined
  if (!(await segments.has(segment).catch(() => true))) return { kind: 'gone' }
  if (!(error instanceof SegmentError)) return examine(error, probe)
  return await salvage(error, examined)
}

async function prove(error: unknown, probe: () => Promise<void>): Promise<Outcome> {
  try {
    await probe()
  } catch (fault) {
    return { kind: 'fault', error: fault }
  }
  return { kind: error instanceof ConversionCrashed ? 'crashed' : 'failed', error }
}

/** A segment that turns out to be intact when it is read again was misread: that is a fault of the node, however often it happens. */
async function salvage(error: SegmentError, { segments, segment, id, logger }: Examined): Promise<Outcome> {
  try {
    const salvaged = await segments.salvage(segment)
    if (salvaged.outcome === 'intact') return { kind: 'fault', error }
    logger.error({ segment: id, endpoint: segment.logName, ...salvaged }, `damaged segment ${salvaged.outcome}`)
    return { kind: salvaged.outcome }
  } catch (failure) {
    return failure instanceof SegmentError ? { kind: 'unreadable', error } : { kind: 'fault', error: failure }
  }
}
