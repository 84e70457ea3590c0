import { Buffer } from 'node:buffer'
import { HEADER_BYTES } from '#log/local/format/segment-file.ts'
import type { FrameInput } from '../../src/log/frame.ts'

/** Returns a frame with one record, and without an envelope unless the test looks for it. */
export function oneRecord({
  payload = '{}',
  envelope = '',
  at = 0,
}: {
  readonly payload?: string | Uint8Array
  readonly envelope?: string
  /** Microseconds since 1970. */
  readonly at?: number
} = {}): FrameInput {
  return {
    layout: 'single',
    receivedAtMicros: at,
    recordCount: 1,
    envelope: Buffer.from(envelope),
    payload: [typeof payload === 'string' ? Buffer.from(payload) : payload],
  }
}

/** Returns where the frame with this index starts in a segment, and for one more than there are where the frames end. */
export function frameAt(segment: Buffer, index: number): number {
  let at = HEADER_BYTES
  for (let before = 0; before < index; before += 1) at += 12 + segment.readUInt32LE(at)
  return at
}
