/** Records as lines of NDJSON. */
import { InletError } from './errors.ts'

/**
 * A record to send: an object or an array becomes JSON; a string or bytes are sent as they are, and must be one line. A line break at
 * their end is not part of the record.
 */
export type SendableRecord = object | string | Uint8Array

/** The record cannot be sent. Nothing else is affected. */
export class RecordError extends InletError {
  override readonly name = 'RecordError'
}

const recordBytesMax = 1024 * 1024
const encoder = new TextEncoder()
const [tab, lineFeed, carriageReturn, space] = [9, 10, 13, 32]

/** Returns a line with its line feed, in memory of its own. Throws a RecordError. */
export function encodeRecord(record: SendableRecord): Uint8Array<ArrayBuffer> {
  const line = record instanceof Uint8Array ? copyWithLineFeed(record) : encoder.encode(`${textOf(record)}\n`)
  const end = line.length - 1
  if (line.indexOf(lineFeed) !== end)
    throw new RecordError('a record sent as text or bytes must be one line: send an object, or each line as a record')
  const bytes = line[end - 1] === carriageReturn ? end - 1 : end
  if (bytes > recordBytesMax) throw new RecordError(`the record has ${bytes} bytes: at most ${recordBytesMax} are allowed`)
  if (isBlank(line)) throw new RecordError('the record is empty: a line of only spaces is not stored')
  return line
}

function textOf(record: string | object): string {
  if (typeof record === 'string') return record.endsWith('\n') ? record.slice(0, -1) : record
  const json: string | undefined = JSON.stringify(record)
  if (json === undefined) throw new RecordError(`a record must be an object, text or bytes, not ${typeof record}`)
  return json
}

function copyWithLineFeed(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const content = bytes.at(-1) === lineFeed ? bytes.subarray(0, -1) : bytes
  const line = new Uint8Array(content.length + 1)
  line.set(content)
  line[content.length] = lineFeed
  return line
}

function isBlank(line: Uint8Array): boolean {
  return line.every((byte) => byte === space || byte === tab || byte === carriageReturn || byte === lineFeed)
}
