/**
 * `inlet segment`: prints or checks a segment, plain or zstd, sealed or not.
 *
 * Exit codes: 0 the segment is intact, 1 it is damaged, not sealed, or not a segment.
 */
import type { Writable } from 'node:stream'
import { errorCode, systemFiles } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'
import type { Frame } from '#wal/frame.ts'
import { forEachRecord } from '#wal/records.ts'
import { SegmentError } from '#wal/segment-reader.ts'
import { type SegmentScan, scanSegment } from '#wal/segment-scan.ts'
import { type CliContext, tolerateClosedPipe } from './context.ts'
import { isoMicros, writeRecords } from './records.ts'

const BUFFER_BYTES = 4 * 1024 * 1024
const PROGRESS_INTERVAL_MS = 500

export function catSegment(this: CliContext, _flags: object, path: string): Promise<void> {
  return readSegment(this, path, (scan) => writeRecords(scan, {}, this.process.stdout))
}

export function checkSegment(this: CliContext, _flags: object, path: string): Promise<void> {
  return readSegment(this, path, (scan) => check(scan, path, this.process.stdout, this.process.stderr))
}

async function readSegment(context: CliContext, path: string, read: (scan: SegmentScan) => Promise<void>): Promise<void> {
  tolerateClosedPipe(context)
  let scan: SegmentScan | undefined
  try {
    scan = await scanSegment(systemFiles, path)
    await read(scan)
  } catch (error) {
    throw toUserError(path, error)
  } finally {
    await scan?.close()
  }
}

async function check(scan: SegmentScan, path: string, stdout: Writable, stderr: Writable): Promise<void> {
  const found = { frames: 0, records: 0, payloadBytes: 0, miscounted: 0 }
  let reportedAt = performance.now()
  const summary = () => `${found.frames} frames, ${found.records} records, ${found.payloadBytes} payload bytes`
  try {
    for await (const frames of scan.frames(BUFFER_BYTES)) {
      for (const frame of frames) count(found, frame)
      if (performance.now() - reportedAt > PROGRESS_INTERVAL_MS) {
        reportedAt = performance.now()
        stderr.write(`${path}: ${summary()} so far\n`)
      }
    }
  } catch (error) {
    stdout.write(`${describe(path, scan, undefined)}intact      ${summary()}\n`)
    throw error
  }
  const footer = scan.footer()
  stdout.write(`${describe(path, scan, footer)}intact      ${summary()}\n`)
  if (found.miscounted === 0) {
    stdout.write('ok          every checksum matches\n')
    return
  }
  throw new UserError(`${path}: record count mismatch in ${found.miscounted} frames`)
}

function count(found: { frames: number; records: number; payloadBytes: number; miscounted: number }, frame: Frame): void {
  const records = forEachRecord(frame, () => undefined)
  found.frames += 1
  found.records += records
  found.payloadBytes += frame.payload.byteLength
  if (records !== frame.recordCount) found.miscounted += 1
}

function describe(path: string, { header }: SegmentScan, footer: ReturnType<SegmentScan['footer']>): string {
  const lines = [
    `segment     ${path}`,
    `log         ${header.logName}`,
    `seq         ${header.seq}`,
    `incarnation ${header.incarnation}`,
  ]
  if (header.createdAtMicros !== undefined) lines.push(`created     ${isoMicros(header.createdAtMicros)}`)
  if (footer !== undefined) {
    lines.push(`received    ${isoMicros(footer.firstReceivedAtMicros)} to ${isoMicros(footer.lastReceivedAtMicros)}`)
    lines.push(`sealed      ${isoMicros(footer.sealedAtMicros)}`)
  }
  return `${lines.join('\n')}\n`
}

function toUserError(path: string, error: unknown): unknown {
  if (error instanceof SegmentError) return new UserError(error.message)
  switch (errorCode(error)) {
    case 'ENOENT':
      return new UserError(`${path}: no such file`)
    case 'EISDIR':
      return new UserError(`${path}: is a directory`)
    case 'EACCES':
    case 'EPERM':
      return new UserError(`${path}: permission denied`)
    default:
      return error
  }
}
