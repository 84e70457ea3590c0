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

/** A range of lines. Split at its line feeds, it is its records. */
export type LineBlock = {
  readonly start: number
  readonly end: number
  readonly records: number
}

/**
 * Returns blocks with all lines of a payload, each of at most so many records, and of at most so many bytes unless it is one record. Returns
 * undefined if a line ends with a carriage return, or begins with white space and so might be blank: only `forEachRecord` finds the records then.
 */
export function lineBlocks(
  payload: Uint8Array,
  max: { readonly records: number; readonly bytes: number },
): readonly LineBlock[] | undefined {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  const blocks: LineBlock[] = []
  let [blockStart, records] = [0, 0]
  for (let start = 0; start < bytes.byteLength; ) {
    const found = bytes.indexOf(LINE_FEED, start)
    const end = found === -1 ? bytes.byteLength : found
    const first = bytes[start]
    const isUnclear = first === SPACE || first === TAB || first === CARRIAGE_RETURN || first === LINE_FEED
    if (isUnclear || bytes[end - 1] === CARRIAGE_RETURN) return undefined
    if (records === max.records || (records > 0 && end - blockStart > max.bytes)) {
      blocks.push({ start: blockStart, end: start - 1, records })
      ;[blockStart, records] = [start, 0]
    }
    records += 1
    start = end + 1
  }
  if (records > 0) {
    const end = bytes.at(-1) === LINE_FEED ? bytes.byteLength - 1 : bytes.byteLength
    blocks.push({ start: blockStart, end, records })
  }
  return blocks
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
