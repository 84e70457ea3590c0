/** Records of a segment as lines of JSON, for `segments cat` and `segments export`. */
import { Buffer, isUtf8 } from 'node:buffer'
import type { Writable } from 'node:stream'
import { MiB } from '#lib/bytes.ts'
import { isoTimestamp } from '#lib/clock.ts'
import type { SegmentScan } from '#log/local/read/segment-scan.ts'
import { forEachRecord } from '#log/records.ts'
import { decodeEnvelope } from '#model/record-envelope.ts'

/** Frames of a file that are read at once. */
export const bufferBytes = 4 * MiB

export type WriteOptions = {
  /** Fields that each line starts with. */
  readonly fields?: Readonly<Record<string, string>>
  /** Called with the number of records and the bytes of their frames, after each group that was written. */
  readonly onWritten?: (records: number, bytes: number) => void
}

/** Writes one line per record. Stops without an error if the reader closes the stream. Throws SegmentError as `frames` does. */
export async function writeRecords(scan: SegmentScan, { fields, onWritten }: WriteOptions, to: Writable): Promise<void> {
  const { seq } = scan.header
  let index = 0
  for await (const frames of scan.frames(bufferBytes)) {
    const before = index
    let bytes = 0
    for (const frame of frames) {
      let lines = ''
      const envelope = { received_at: isoMicros(frame.receivedAtMicros), ...toReadableEnvelope(frame.envelope) }
      forEachRecord(frame, (start, end) => {
        const payload = toReadable('payload', frame.payload.subarray(start, end))
        lines += `${JSON.stringify({ ...fields, seq, record_index: index++, ...envelope, ...payload })}\n`
      })
      bytes += frame.payload.byteLength
      // A reader such as `head` may close the pipe at any time.
      if (to.destroyed || to.closed) return
      if (!to.write(lines)) await waitForDrain(to)
    }
    onWritten?.(index - before, bytes)
  }
}

export function isoMicros(micros: number): string {
  const milliseconds = Math.floor(micros / 1_000)
  return isoTimestamp(milliseconds).replace('Z', `${String(micros - milliseconds * 1_000).padStart(3, '0')}Z`)
}

function waitForDrain(to: Writable): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  to.once('drain', resolve).once('close', resolve)
  return promise
}

function toReadableEnvelope(bytes: Uint8Array): object {
  try {
    return { envelope: decodeEnvelope(bytes) }
  } catch {
    return toReadable('envelope', bytes)
  }
}

/** Returns the bytes as text if they are UTF-8, otherwise as base64 under `<name>_base64`. */
function toReadable(name: string, bytes: Uint8Array): Readonly<Record<string, string>> {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return isUtf8(view) ? { [name]: view.toString('utf8') } : { [`${name}_base64`]: view.toString('base64') }
}
