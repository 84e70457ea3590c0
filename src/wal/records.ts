/**
 * Defines how the payload of a frame splits into records.
 *
 * `single`: the payload is one record. `lines`: each line is a record, without its line feed and without one carriage return before it;
 * lines of only spaces, tabs and carriage returns are skipped. `texts`: JSON texts, each without the record separator (1e) that JSON allows
 * nowhere; what is only white space is skipped.
 *
 * Owns: this rule; ingest counts by it and delivery splits by it. Does not own: whether a record is JSON.
 */
import { Buffer } from 'node:buffer'
import type { Layout } from './frame.ts'

export const LINE_FEED = 0x0a
export const RECORD_SEPARATOR = 0x1e
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const TAB = 0x09

/** Calls `visit` with the start and the end (exclusive) of every record, in order. Returns the number of records. */
export function forEachRecord(
  { layout, payload }: { readonly layout: Layout; readonly payload: Uint8Array },
  visit: (start: number, end: number, index: number) => void,
): number {
  if (layout === 'single') {
    visit(0, payload.byteLength, 0)
    return 1
  }
  const separator = layout === 'lines' ? LINE_FEED : RECORD_SEPARATOR
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  let count = 0
  for (let start = 0; start < bytes.byteLength; ) {
    const found = bytes.indexOf(separator, start)
    const stop = found === -1 ? bytes.byteLength : found
    const end = separator === LINE_FEED && stop > start && bytes[stop - 1] === CARRIAGE_RETURN ? stop - 1 : stop
    if (!isBlank(bytes, start, end)) visit(start, end, count++)
    start = stop + 1
  }
  return count
}

export function countRecords(frame: { readonly layout: Layout; readonly payload: Uint8Array }): number {
  return forEachRecord(frame, () => undefined)
}

/** Whether there is only white space between `start` and `end`. A line has no line feed that would count. */
export function isBlank(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]
    if (byte !== SPACE && byte !== TAB && byte !== CARRIAGE_RETURN && byte !== LINE_FEED) return false
  }
  return true
}
