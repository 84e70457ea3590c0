/**
 * The one definition of what the records of a frame are.
 *
 * `single`: the payload, as it is. `lines`: what stands between line feeds, without one carriage return at its end; a line
 * of nothing but spaces, tabs and carriage returns is no record.
 *
 * Owns: this rule; ingest counts by it and delivery splits by it. Does not own: whether a record is JSON.
 */
import { Buffer } from 'node:buffer'
import type { Layout } from './frame.ts'

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const TAB = 0x09

/** Calls with the start and the end (exclusive) of every record, in order. Answers how many there were. */
export function forEachRecord(
  { layout, payload }: { readonly layout: Layout; readonly payload: Uint8Array },
  visit: (start: number, end: number, index: number) => void,
): number {
  if (layout === 'single') {
    visit(0, payload.byteLength, 0)
    return 1
  }
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  let count = 0
  for (let start = 0; start < bytes.byteLength; ) {
    const feed = bytes.indexOf(LINE_FEED, start)
    const stop = feed === -1 ? bytes.byteLength : feed
    const end = stop > start && bytes[stop - 1] === CARRIAGE_RETURN ? stop - 1 : stop
    if (!isBlank(bytes, start, end)) visit(start, end, count++)
    start = stop + 1
  }
  return count
}

export function countRecords(frame: { readonly layout: Layout; readonly payload: Uint8Array }): number {
  return forEachRecord(frame, () => undefined)
}

/** Whether nothing stands between `start` and `end` but spaces, tabs and carriage returns. */
export function isBlank(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]
    if (byte !== SPACE && byte !== TAB && byte !== CARRIAGE_RETURN) return false
  }
  return true
}
