/** Writes the files of a log as ingest does, but syncs nothing: to have many of them soon. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { highWaterName } from '#log/local/format/directory.ts'
import { crcAt, encodedBytes, encodeFrame } from '#log/local/format/frame.ts'
import { computeSalt, encodeSaltKey } from '#log/local/format/salt-key.ts'
import { encodeFooter, encodeHeader, HEADER_BYTES, segmentName } from '#log/local/format/segment-file.ts'
import { SegmentTally } from '#log/local/format/segment-tally.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { FrameInput } from '../src/log/frame.ts'
import type { SegmentRef } from '../src/log/segment-source.ts'

const secret = Buffer.alloc(32, 7)
const incarnation = 'benchbench'

export type WalFiles = {
  /** Sealed segments of each log. */
  readonly sealed: number
  /** Whether each log also has an open segment, as kill -9 leaves it. */
  readonly isOpen: boolean
  readonly payload: Buffer
  readonly framesPerSegment: number
}

/** Creates a WAL directory with these logs. Returns the number of segment files. */
export function writeWal(
  directory: string,
  logNames: readonly string[],
  { sealed, isOpen, payload, framesPerSegment }: WalFiles,
): number {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  writeFileSync(join(directory, 'salt-key'), encodeSaltKey({ secret, isReplacement: false }))
  const receivedAtMicros = Date.now() * 1000
  const recordCount = payload.toString('latin1').split('\n').length - 1
  const frame: FrameInput = {
    ...{ layout: 'lines', receivedAtMicros, recordCount, envelope: encodeEnvelope({ protocol: 'http' }) },
    payload: [payload],
  }
  for (const logName of logNames) {
    const log = join(directory, logName)
    mkdirSync(log, { mode: 0o700 })
    const last = sealed + (isOpen ? 0 : -1)
    for (let seq = 0; seq <= last; seq++) {
      const isSealed = seq < sealed
      const identity = { logName, seq, incarnation }
      const path = join(log, segmentName(identity, isSealed ? 'wal' : 'open'))
      writeFileSync(path, segmentBytes(identity, frame, framesPerSegment, isSealed))
    }
    writeFileSync(join(log, highWaterName), `${last}\n`)
  }
  return logNames.length * (sealed + (isOpen ? 1 : 0))
}

function segmentBytes(identity: SegmentRef, frame: FrameInput, frames: number, isSealed: boolean): Buffer {
  const salt = computeSalt(secret, identity)
  const bytes = Buffer.alloc(frames * encodedBytes(frame))
  const tally = new SegmentTally(salt)
  let at = 0
  for (let index = 0; index < frames; index++) {
    const start = at
    at += encodeFrame(frame, salt, true).copy(bytes, at)
    tally.add(frame, frame.payload[0]?.byteLength ?? 0, crcAt(bytes, start))
  }
  const header = encodeHeader({ ...identity, createdAtMicros: frame.receivedAtMicros, salt })
  const footer = encodeFooter(tally.footer(HEADER_BYTES + at, frame.receivedAtMicros), salt)
  return Buffer.concat([header, bytes, ...(isSealed ? [footer] : [])])
}
