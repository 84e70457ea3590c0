import { Buffer } from 'node:buffer'
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
