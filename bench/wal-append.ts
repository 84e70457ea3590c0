/**
 * Durable appends to the WAL, compared with their floor in the same run: bare writev and fdatasync with groups of the same sizes.
 *
 * Usage: node bench/wal-append.ts [rounds]
 */
import { Buffer } from 'node:buffer'
import * as fs from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '#lib/clock.ts'
import { type Files, type OpenFile, systemFiles } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { FrameInput } from '#wal/frame.ts'
import { Wal } from '#wal/wal.ts'

export type WalAppendResult = {
  readonly payloadBytes: number
  readonly callers: number
  readonly appendsPerSecond: number
  readonly floorPerSecond: number
  readonly ratio: number
  /** CPU time of this process per append, for the WAL and for the floor. */
  readonly microsPerAppend: number
  readonly floorMicrosPerAppend: number
}

type Case = { readonly payloadBytes: number; readonly callers: number; readonly appends: number }
type Write = { readonly chunks: number; readonly bytes: number }
type Measured = { readonly perSecond: number; readonly cpuMicros: number }

const cases: readonly Case[] = [
  { payloadBytes: 250, callers: 64, appends: 40_000 },
  { payloadBytes: 250, callers: 512, appends: 150_000 },
  { payloadBytes: 25_000, callers: 64, appends: 8_000 },
  { payloadBytes: 25_000, callers: 256, appends: 12_000 },
]
const segmentBytes = 64 * 1024 * 1024

export async function benchmark(rounds = 5): Promise<readonly WalAppendResult[]> {
  const results: WalAppendResult[] = []
  for (const spec of cases) {
    const own: Measured[] = []
    const floor: Measured[] = []
    for (let round = 0; round < rounds; round += 1) {
      process.stderr.write(`\rwal append ${spec.payloadBytes} B, ${spec.callers} callers: round ${round + 1} of ${rounds} `)
      const { measured, writes } = await measureLog(spec)
      own.push(measured)
      floor.push(await measureFloor(spec, writes))
    }
    process.stderr.write('\r\u001b[K')
    const [appendsPerSecond, floorPerSecond] = [median(own, 'perSecond'), median(floor, 'perSecond')]
    results.push({
      payloadBytes: spec.payloadBytes,
      callers: spec.callers,
      appendsPerSecond,
      floorPerSecond,
      ratio: appendsPerSecond / floorPerSecond,
      microsPerAppend: median(own, 'cpuMicros') / spec.appends,
      floorMicrosPerAppend: median(floor, 'cpuMicros') / spec.appends,
    })
  }
  return results
}

/** Runs callers that append again as soon as their append resolves. Records the groups that the WAL writes. */
async function measureLog({ payloadBytes, callers, appends }: Case): Promise<{ measured: Measured; writes: readonly Write[] }> {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-bench-'))
  const writes: Write[] = []
  const wal = new Wal({ directory, files: recordWrites(writes), clock: systemClock, logger: createLogger('bench', 'error') })
  await wal.start()
  wal.configure('bench', { segmentBytes, segmentMaxAgeMs: 60_000, seqAbove: -1 })
  const frame: FrameInput = {
    layout: 'lines',
    receivedAtMicros: 1_790_000_000_000_000,
    recordCount: 1,
    envelope: encodeEnvelope({ protocol: 'http' }),
    payload: [Buffer.alloc(payloadBytes, 'x')],
  }
  let left = appends
  const caller = async () => {
    while (left-- > 0) await wal.append('bench', frame)
  }
  const measured = await measure(appends, async () => {
    await Promise.all(Array.from({ length: callers }, caller))
  })
  await wal.stop(new AbortController().signal)
  await rm(directory, { recursive: true })
  return { measured, writes }
}

/** Writes and syncs the same groups with the same bytes, without a WAL. */
async function measureFloor({ appends }: Case, writes: readonly Write[]): Promise<Measured> {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-bench-'))
  const source = Buffer.alloc(64 * 1024 * 1024, 'x')
  let file = 0
  let descriptor = fs.openSync(join(directory, String(file)), 'wx')
  let at = 0
  const measured = await measure(appends, async () => {
    for (const { chunks, bytes } of writes) {
      if (at + bytes > segmentBytes) {
        fs.closeSync(descriptor)
        descriptor = fs.openSync(join(directory, String(++file)), 'wx')
        at = 0
      }
      const size = Math.floor(bytes / chunks)
      const parts = Array.from({ length: chunks }, (_, index) =>
        source.subarray(index * size, index === chunks - 1 ? bytes : (index + 1) * size),
      )
      // As in the WAL: small groups synchronously, large ones through the thread pool, whichever is faster.
      if (bytes <= 256 * 1024) fs.writevSync(descriptor, parts, at)
      else {
        await new Promise<void>((resolve, reject) => {
          fs.writev(descriptor, parts, at, (error) => (error === null ? resolve() : reject(error)))
        })
      }
      await new Promise<void>((resolve, reject) =>
        fs.fdatasync(descriptor, (error) => (error === null ? resolve() : reject(error))),
      )
      at += bytes
    }
  })
  fs.closeSync(descriptor)
  await rm(directory, { recursive: true })
  return measured
}

function recordWrites(writes: Write[]): Files {
  return {
    ...systemFiles,
    makeDirectory: (path) => systemFiles.makeDirectory(path),
    async open(path, mode): Promise<OpenFile> {
      const file = await systemFiles.open(path, mode)
      if (!path.endsWith('.open')) return file
      return {
        path,
        write(chunks, position) {
          writes.push({ chunks: chunks.length, bytes: chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0) })
          return file.write(chunks, position)
        },
        read: (into, position) => file.read(into, position),
        bytes: () => file.bytes(),
        truncate: (bytes) => file.truncate(bytes),
        isLinked: () => file.isLinked(),
        isNamed: () => file.isNamed(),
        sync: () => file.sync(),
        close: () => file.close(),
      }
    },
  }
}

async function measure(appends: number, work: () => Promise<void>): Promise<Measured> {
  const cpu = process.cpuUsage()
  const start = performance.now()
  await work()
  const { user, system } = process.cpuUsage(cpu)
  return { perSecond: appends / ((performance.now() - start) / 1_000), cpuMicros: user + system }
}

function median(measured: readonly Measured[], field: keyof Measured): number {
  const values = measured.map((one) => one[field]).sort((a, b) => a - b)
  return values[Math.floor(values.length / 2)] ?? 0
}

export function printWalAppend(results: readonly WalAppendResult[]): void {
  console.table(
    results.map((result) => ({
      'payload bytes': result.payloadBytes,
      callers: result.callers,
      'appends/s': Math.round(result.appendsPerSecond),
      'floor/s': Math.round(result.floorPerSecond),
      'MB/s': Math.round((result.appendsPerSecond * result.payloadBytes) / 1e6),
      ratio: result.ratio.toFixed(2),
      'µs cpu/append': result.microsPerAppend.toFixed(2),
      'µs cpu/append, floor': result.floorMicrosPerAppend.toFixed(2),
    })),
  )
}

if (import.meta.main) printWalAppend(await benchmark(Number(process.argv[2] ?? 5)))
