import { Buffer } from 'node:buffer'
import * as fs from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Files, type OpenFile, systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { FrameInput } from '../src/log/frame.ts'
import { replaceOperations } from '../test/support/replace-operations.ts'
import { type Benchmark, cost, isWanted, rate, say } from './figures.ts'
import { median } from './measure.ts'

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

export const benchmark: Benchmark = {
  about:
    'Durable appends to the write-ahead log by callers that append again as soon as they are told that the bytes are on disk. The floor is a bare writev and fdatasync with groups of the same sizes.',
  async *measure(options) {
    const rounds = options.rounds ?? (options.isQuick ? 3 : 5)
    for (const spec of cases) {
      const name = `${spec.payloadBytes} B, ${spec.callers} callers`
      if (!isWanted(name, options)) continue
      const all: { own: Measured; floor: Measured }[] = []
      for (let round = 0; round < rounds; round += 1) {
        say(`${name}: round ${round + 1} of ${rounds}`)
        const { measured: own, writes } = await measureLog(spec)
        all.push({ own, floor: await measureFloor(spec, writes) })
      }
      const of = (which: 'own' | 'floor', what: keyof Measured) => median(all.map((each) => each[which][what]))
      yield rate({ work: name, unit: 'appends/s', ours: of('own', 'perSecond'), floor: of('floor', 'perSecond') })
      yield cost({
        work: `${name}: CPU an append`,
        unit: 'µs',
        ours: of('own', 'cpuMicros') / spec.appends,
        floor: of('floor', 'cpuMicros') / spec.appends,
      })
    }
  },
}

/** Runs callers that append again as soon as their append resolves. Records the groups that the WAL writes. */
async function measureLog({ payloadBytes, callers, appends }: Case): Promise<{ measured: Measured; writes: readonly Write[] }> {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-bench-'))
  const writes: Write[] = []
  const wal = new LocalLogWriter({
    ...system,
    directory,
    files: recordWrites(writes),
    logger: createLogger('bench', 'error'),
  })
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
      return replaceOperations(file, {
        write(chunks, position) {
          writes.push({ chunks: chunks.length, bytes: chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0) })
          return file.write(chunks, position)
        },
      })
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
