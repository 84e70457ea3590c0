import { Buffer } from 'node:buffer'
import type { Frame } from '#log/frame.ts'
import type { SegmentReader } from '#log/segment-source.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'

/** Returns a segment with one record, in memory. Whatever fails on it is the fault of the node. */
export function probeSegment(): Pick<SegmentReader, 'header' | 'footer' | 'bytes' | 'frames' | 'content'> {
  const frame: Frame = {
    layout: 'single',
    receivedAtMicros: 0,
    recordCount: 1,
    envelope: encodeEnvelope({ protocol: 'http' }),
    payload: Buffer.from('{"probe":true}'),
  }
  return {
    header: { logName: 'probe', incarnation: 'probe', seq: 0 },
    footer: { records: 1, firstReceivedAtMicros: 0, sealedAtMicros: 0, damagedRecords: 0 },
    bytes: 0,
    async *frames() {
      yield [frame]
    },
    async *content() {},
  }
}
