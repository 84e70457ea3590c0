/**
 * `inlet segment cat FILE` and `inlet segment check FILE`: what is in a segment, plain or zstd, sealed or not.
 *
 * Exit codes: 0 it is whole, 1 it is damaged, not sealed, or no segment, 2 the command was wrong.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import type { Writable } from 'node:stream'
import { isoTimestamp } from '#lib/clock.ts'
import { errorCode, systemFiles } from '#lib/files.ts'
import { decodeEnvelope } from '#model/record-envelope.ts'
import type { Frame } from '#wal/frame.ts'
import { forEachRecord } from '#wal/records.ts'
import type { SegmentFooter } from '#wal/segment-file.ts'
import { SegmentError, type SegmentScan, scanSegment } from '#wal/segment-reader.ts'

const BUFFER_BYTES = 4 * 1024 * 1024
const PROGRESS_INTERVAL_MS = 500
const usage = `usage: inlet segment cat FILE     print every record as one JSON line
       inlet segment check FILE   verify every checksum and say what is in it
FILE is a segment of the write-ahead log (.wal, .open, .quarantine) or of a bucket (.wal.zst).
`

/** Answers the exit code. */
export async function segmentCommand(
  args: readonly string[],
  stdout: Writable,
  stderr: Writable = process.stderr,
): Promise<number> {
  const [action, path, ...more] = args
  if ((action !== 'cat' && action !== 'check') || path === undefined || more.length > 0) {
    stderr.write(usage)
    return 2
  }
  stdout.on('error', (error) => {
    if (errorCode(error) !== 'EPIPE') throw error
  })
  let scan: SegmentScan | undefined
  try {
    scan = await scanSegment(systemFiles, path)
    return action === 'cat' ? await cat(scan, stdout) : await check(scan, path, stdout, stderr)
  } catch (error) {
    const message = explain(path, error)
    if (message === undefined) throw error
    stderr.write(`${message}\n`)
    return 1
  } finally {
    await scan?.close()
  }
}

async function cat(scan: SegmentScan, stdout: Writable): Promise<number> {
  const { seq } = scan.header
  let index = 0
  for await (const frames of scan.frames(BUFFER_BYTES)) {
    for (const frame of frames) {
      let lines = ''
      const envelope = {
        seq,
        received_at: isoMicros(frame.receivedAtMicros),
        ...readableEnvelope(frame.envelope),
      }
      forEachRecord(frame, (start, end) => {
        const { seq: first, ...rest } = envelope
        lines += `${JSON.stringify({ seq: first, record_index: index++, ...rest, ...readable('payload', frame.payload.subarray(start, end)) })}\n`
      })
      // A reader such as `head` may go at any time: then there is nobody left to print for.
      if (stdout.destroyed || stdout.closed) return 0
      if (!stdout.write(lines)) await drained(stdout)
    }
  }
  return 0
}

function drained(stdout: Writable): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  stdout.once('drain', resolve).once('close', resolve)
  return promise
}

function readableEnvelope(bytes: Uint8Array): object {
  try {
    return { envelope: decodeEnvelope(bytes) }
  } catch {
    return readable('envelope', bytes)
  }
}

/** As text, or, under a name that says so, as base64. */
function readable(name: string, bytes: Uint8Array): Readonly<Record<string, string>> {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return isUtf8(view) ? { [name]: view.toString('utf8') } : { [`${name}_base64`]: view.toString('base64') }
}

async function check(scan: SegmentScan, path: string, stdout: Writable, stderr: Writable): Promise<number> {
  const found = { frames: 0, records: 0, payloadBytes: 0, miscounted: 0 }
  let shownAt = performance.now()
  const summary = () => `${found.frames} frames, ${found.records} records, ${found.payloadBytes} payload bytes`
  try {
    for await (const frames of scan.frames(BUFFER_BYTES)) {
      for (const frame of frames) count(found, frame)
      if (performance.now() - shownAt > PROGRESS_INTERVAL_MS) {
        shownAt = performance.now()
        stderr.write(`${path}: ${summary()} so far\n`)
      }
    }
  } catch (error) {
    stdout.write(`${describe(path, scan, undefined)}whole       ${summary()}\n`)
    throw error
  }
  const footer = scan.footer()
  stdout.write(`${describe(path, scan, footer)}whole       ${summary()}\n`)
  if (found.miscounted === 0) {
    stdout.write('ok          every checksum matches\n')
    return 0
  }
  stderr.write(`${path}: ${found.miscounted} frames say another number of records than they hold\n`)
  return 1
}

function count(found: { frames: number; records: number; payloadBytes: number; miscounted: number }, frame: Frame): void {
  const records = forEachRecord(frame, () => undefined)
  found.frames += 1
  found.records += records
  found.payloadBytes += frame.payload.byteLength
  if (records !== frame.recordCount) found.miscounted += 1
}

function describe(path: string, { header }: SegmentScan, footer: SegmentFooter | undefined): string {
  const lines = [
    `segment     ${path}`,
    `log         ${header.logName}`,
    `seq         ${header.seq}`,
    `incarnation ${header.incarnation}`,
    `created     ${isoMicros(header.createdAtMicros)}`,
  ]
  if (footer !== undefined) {
    lines.push(`received    ${isoMicros(footer.firstReceivedAtMicros)} to ${isoMicros(footer.lastReceivedAtMicros)}`)
    lines.push(`sealed      ${isoMicros(footer.sealedAtMicros)}`)
  }
  return `${lines.join('\n')}\n`
}

function isoMicros(micros: number): string {
  const milliseconds = Math.floor(micros / 1_000)
  return isoTimestamp(milliseconds).replace('Z', `${String(micros - milliseconds * 1_000).padStart(3, '0')}Z`)
}

function explain(path: string, error: unknown): string | undefined {
  if (error instanceof SegmentError) return error.message
  switch (errorCode(error)) {
    case 'ENOENT':
      return `${path}: there is no such file`
    case 'EISDIR':
      return `${path}: is a directory`
    case 'EACCES':
    case 'EPERM':
      return `${path}: may not be read by this user`
    default:
      return undefined
  }
}
