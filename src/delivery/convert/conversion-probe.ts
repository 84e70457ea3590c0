/**
 * A conversion that must succeed on a healthy node: one record, in memory, to raw Parquet.
 *
 * Law: if it fails, nothing that fails at the same time is proven to be the segment's own fault.
 */
import { MiB } from '#lib/bytes.ts'
import type { Clock } from '#lib/clock.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { Frame } from '#wal/frame.ts'
import type { OpenSegment } from '../segments.ts'
import { TransientError } from '../transient-error.ts'
import { buildArtifacts } from './build.ts'

/** DuckDB needs this much for one record. */
const probeBytes = 64 * MiB

/** The node cannot convert anything now. */
class NodeCannotConvert extends TransientError {
  override readonly name = 'NodeCannotConvert'
}

export type ProbeOptions = { readonly scratch: string; readonly clock: Clock; readonly signal: AbortSignal }

/** Throws the signal's reason, or NodeCannotConvert. Takes about 50 ms. */
export async function probeConversion({ scratch, clock, signal }: ProbeOptions): Promise<void> {
  try {
    const built = await buildArtifacts({
      ...{ segment: probeSegment(), outputFormats: ['parquet'], views: [] },
      ...{ scratchDirectory: scratch, memoryBytes: probeBytes, signal, clock },
    })
    await built.remove()
  } catch (error) {
    signal.throwIfAborted()
    throw new NodeCannotConvert('this node cannot convert segments now', { cause: error })
  }
}

function probeSegment(): Pick<OpenSegment, 'header' | 'footer' | 'bytes' | 'frames' | 'content'> {
  const frame: Frame = {
    layout: 'single',
    receivedAtMicros: 0,
    recordCount: 1,
    envelope: encodeEnvelope({ protocol: 'http' }),
    payload: Buffer.from('{"probe":true}'),
  }
  return {
    header: { logName: 'probe', incarnation: 'probe', seq: 0 },
    footer: { records: 1, sealedAtMicros: 0, damagedRecords: 0 },
    bytes: 0,
    async *frames() {
      yield [frame]
    },
    async *content() {},
  }
}
