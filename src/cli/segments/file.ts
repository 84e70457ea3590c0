/**
 * `inlet segments cat` and `check`: prints or checks the file of a segment, plain or zstd, sealed or not.
 *
 * Exit codes: 0 the segment is intact, 1 it is damaged, not sealed, or not a segment.
 */
import { errorCode, systemFiles } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'
import type { Frame } from '#log/frame.ts'
import { type SegmentScan, scanSegment } from '#log/local/read/segment-scan.ts'
import { forEachRecord } from '#log/records.ts'
import { SegmentError } from '#log/segment-error.ts'
import type { CliContext } from '../terminal/context.ts'
import { type JsonFlags, printResult } from '../terminal/print-json.ts'
import { bufferBytes, isoMicros, writeRecords } from './records.ts'

const PROGRESS_INTERVAL_MS = 500

export function catSegment(this: CliContext, _flags: object, path: string): Promise<void> {
  return readSegment(path, (scan) => writeRecords(scan, {}, this.process.stdout))
}

export function checkSegment(this: CliContext, flags: JsonFlags, path: string): Promise<void> {
  return readSegment(path, (scan) => check(this, flags, scan, path))
}

async function readSegment(path: string, read: (scan: SegmentScan) => Promise<void>): Promise<void> {
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

async function check(context: CliContext, flags: JsonFlags, scan: SegmentScan, path: string): Promise<void> {
  const found = { frames: 0, records: 0, payloadBytes: 0, miscounted: 0 }
  let reportedAt = performance.now()
  const summary = () => `${found.frames} frames, ${found.records} records, ${found.payloadBytes} payload bytes`
  const report = (ok: boolean, footer?: ReturnType<SegmentScan['footer']>) => {
    const segment = describe(path, scan, footer)
    const { frames, records, payloadBytes: payload_bytes } = found
    const lines = Object.entries(segment).map(([name, value]) => `${name.padEnd(11)} ${value}\n`)
    const verdict = ok ? 'ok          every checksum matches\n' : ''
    const text = `${lines.join('')}intact      ${summary()}\n${verdict}`
    printResult(context, flags, { ...segment, frames, records, payload_bytes, ok }, text)
  }
  try {
    for await (const frames of scan.frames(bufferBytes)) {
      for (const frame of frames) count(found, frame)
      if (performance.now() - reportedAt > PROGRESS_INTERVAL_MS) {
        reportedAt = performance.now()
        context.process.stderr.write(`${path}: ${summary()} so far\n`)
      }
    }
  } catch (error) {
    report(false)
    throw error
  }
  report(found.miscounted === 0, scan.footer())
  if (found.miscounted > 0) throw new UserError(`${path}: record count mismatch in ${found.miscounted} frames`)
}

function count(found: { frames: number; records: number; payloadBytes: number; miscounted: number }, frame: Frame): void {
  const records = forEachRecord(frame, () => undefined)
  found.frames += 1
  found.records += records
  found.payloadBytes += frame.payload.byteLength
  if (records !== frame.recordCount) found.miscounted += 1
}

/** Describes a segment by its header and footer. Without a footer it was not sealed. */
function describe(path: string, { header }: SegmentScan, footer: ReturnType<SegmentScan['footer']>) {
  const { logName, seq, incarnation, createdAtMicros } = header
  return {
    ...{ segment: path, log: logName, seq, incarnation },
    ...(createdAtMicros === undefined ? {} : { created: isoMicros(createdAtMicros) }),
    ...(footer === undefined
      ? {}
      : {
          received: `${isoMicros(footer.firstReceivedAtMicros)} to ${isoMicros(footer.lastReceivedAtMicros)}`,
          sealed: isoMicros(footer.sealedAtMicros),
        }),
  }
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
