/**
 * The log on a disk that forgets (test/support/faulty-files.ts): random appends to several logs, seals, deliveries, deleted endpoints, faults,
 * full disks, and kills and power cuts at random operations, also in the middle of a recovery.
 *
 * Law: every acknowledged frame is readable exactly once, intact, in order, under the seq it was acknowledged with. Nothing is readable that
 * was never sent, a seq is never used twice, and no crash looks like damage.
 */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Files } from '#lib/files.ts'
import { type Random, seededRandom } from '#lib/random.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import type { FrameInput } from '../../src/log/frame.ts'
import type { SegmentRef } from '../../src/log/segment-source.ts'
import { type DiskOperation, type Fault, FaultyDisk } from '../support/faulty-files.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { runs } from '../support/thorough.ts'

const directory = '/data/wal'
const logNames = ['alpha', 'beta', 'gamma'] as const
type LogName = (typeof logNames)[number]

type Step =
  | { readonly do: 'append'; readonly log: LogName; readonly sizes: readonly number[]; readonly awaited: boolean }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'deliver'; readonly share: number }
  | {
      readonly do: 'fault'
      readonly kind: DiskOperation['kind']
      readonly error: string
      readonly skip: number
      readonly times: number
    }
  | { readonly do: 'fill'; readonly freeBytes: number }
  | { readonly do: 'free' }
  | { readonly do: 'crash'; readonly operations: number; readonly fault: Fault }
  | { readonly do: 'restart' }
  /** Applies a configuration that has only these logs. `others`: what happens to the rest, as for endpoints that drain or are gone. */
  | { readonly do: 'claim'; readonly logs: readonly LogName[]; readonly others: 'closed' | 'retired' }

const size = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 9_000 }), fc.constant(40_000))
const append = fc.record({
  do: fc.constant('append' as const),
  log: fc.constantFrom(...logNames),
  sizes: fc.array(size, { minLength: 1, maxLength: 12 }),
  awaited: fc.boolean(),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: append },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 400, 1_000, 5_000) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('deliver' as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('fault' as const),
      kind: fc.constantFrom<DiskOperation['kind'][]>(
        'write',
        'sync',
        'rename',
        'syncDirectory',
        'open',
        'truncate',
        'remove',
        'removeDirectory',
        'list',
      ),
      error: fc.constantFrom('ENOSPC', 'EIO', 'EDQUOT'),
      skip: fc.integer({ min: 0, max: 6 }),
      times: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fill' as const), freeBytes: fc.integer({ min: 0, max: 30_000 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('free' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('crash' as const),
      operations: fc.integer({ min: 0, max: 60 }),
      fault: fc.constantFrom<Fault[]>('crash before', 'crash after', 'kill before', 'kill after'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      logs: fc.subarray([...logNames]),
      others: fc.constantFrom('closed' as const, 'retired' as const),
    }),
  },
)

test('every acknowledged frame is readable exactly once after any faults and crashes', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), fc.integer(), async (steps, seed) => {
      const world = new World(seed)
      await world.start()
      for (const next of steps) await world.take(next)
      await world.settle()
      world.check()
    }),
    { numRuns: Number(process.env['WAL_PROPERTY_RUNS'] ?? runs(100, 300)) },
  )
})

type Sent = { readonly log: LogName; readonly payload: Buffer; ackedSeq: number | undefined }

class World {
  readonly #disk: FaultyDisk
  readonly #random: Random
  readonly #clock = new ManualClock()
  readonly #sent: Sent[] = []
  /** Ids in the order in which they were read, by segment. A segment that reappears is committed already and skipped. */
  readonly #delivered = new Map<string, { readonly segment: SegmentRef; readonly ids: readonly number[] }>()
  readonly #pending: Promise<void>[] = []
  #faults: { readonly kind: DiskOperation['kind']; readonly fault: Fault; skip: number; times: number }[] = []
  #crashIn: { operations: number; readonly fault: Fault } | undefined
  #files: Files
  #wal: LocalLogWriter
  #crashes = 0

  constructor(seed: number) {
    this.#random = seededRandom(seed)
    this.#disk = new FaultyDisk(this.#random)
    this.#disk.fault = (operation) => this.#decide(operation)
    this.#files = this.#disk.mount()
    this.#wal = this.#newWal()
  }

  /** Starts a new process on the disk, again and again until none crashes. */
  async start(): Promise<void> {
    for (;;) {
      // The process before may live on, if the crash fell on an operation that failed by itself. Two never share a directory.
      this.#disk.kill()
      this.#files = this.#disk.mount()
      this.#wal = this.#newWal()
      const crashes = this.#crashes
      try {
        await this.#wal.start()
      } catch (error) {
        if (!isSystemError(error)) throw error
        continue
      }
      if (crashes !== this.#crashes) continue
      this.#claim(logNames, 'retired')
      return
    }
  }

  #claim(logs: readonly LogName[], others: 'closed' | 'retired'): void {
    const delivered = [...this.#delivered.values()]
    for (const log of logs) {
      const seqAbove = Math.max(-1, ...delivered.flatMap(({ segment }) => (segment.logName === log ? segment.seq : [])))
      this.#wal.configure(log, { segmentBytes: 30_000, segmentMaxAgeMs: 2_000, seqAbove })
    }
    if (others === 'closed') for (const log of logNames) if (!logs.includes(log)) void this.#wal.end(log, 'closed')
    this.#wal.endUnowned(new Set(others === 'closed' ? logNames : logs))
  }

  async take(next: Step): Promise<void> {
    const crashes = this.#crashes
    switch (next.do) {
      case 'append':
        for (const bytes of next.sizes) this.#append(next.log, bytes)
        if (next.awaited) await this.#quiet()
        break
      case 'wait':
        this.#clock.advance(next.ms)
        await turns(30)
        break
      case 'deliver':
        await this.#deliver(next.share).catch((error: unknown) => {
          if (crashes === this.#crashes && !isSystemError(error)) throw error
        })
        break
      case 'fault': {
        const fault: Fault =
          next.kind === 'write'
            ? { error: next.error, written: Math.floor(this.#random.fraction() * 5_000) }
            : { error: next.error }
        this.#faults.push({ kind: next.kind, fault, skip: next.skip, times: next.times })
        break
      }
      case 'fill':
        this.#disk.capacityBytes = this.#disk.usedBytes() + next.freeBytes
        break
      case 'free':
        this.#disk.capacityBytes = Number.POSITIVE_INFINITY
        break
      case 'crash':
        this.#crashIn = { operations: next.operations, fault: next.fault }
        break
      case 'claim':
        this.#claim(next.logs, next.others)
        break
      case 'restart':
        await this.#wal.stop(this.#random.fraction() < 0.5 ? new AbortController().signal : AbortSignal.abort())
        await this.#quiet()
        await this.start()
        break
    }
    if (crashes !== this.#crashes) {
      await this.#quiet()
      await this.start()
    }
  }

  /** Ends all faults, then seals and delivers everything. */
  async settle(): Promise<void> {
    await this.#quiet()
    this.#faults = []
    this.#crashIn = undefined
    this.#disk.capacityBytes = Number.POSITIVE_INFINITY
    await this.#wal.stop(new AbortController().signal)
    await this.start()
    expect(this.#wal.health().healthy).toBe(true)
    await this.#wal.stop(new AbortController().signal)
    const segments = await new LocalSegmentSource({ ...system, directory, files: this.#files }).list()
    expect(segments.filter(({ state }) => state !== 'sealed')).toEqual([])
    expect(this.#wal.usage.bytes).toBe(segments.reduce((sum, { bytes }) => sum + bytes, 0))
    await this.#deliver(1)
  }

  check(): void {
    const segments = [...this.#delivered.values()].sort((a, b) => a.segment.seq - b.segment.seq)
    const found = new Map<number, number>()
    for (const log of logNames) {
      const own = segments.filter(({ segment }) => segment.logName === log)
      const seqs = own.map(({ segment }) => segment.seq)
      expect(seqs, 'a seq is never used twice').toEqual([...new Set(seqs)])
      const ids = own.flatMap((entry) => entry.ids)
      expect(ids, 'in order, none twice').toEqual([...new Set(ids)].sort((a, b) => a - b))
      for (const { segment, ids: inSegment } of own) for (const id of inSegment) found.set(id, segment.seq)
    }
    for (const [id, { ackedSeq }] of this.#sent.entries()) {
      if (ackedSeq !== undefined) expect(found.get(id), `frame ${id} was acknowledged`).toBe(ackedSeq)
    }
  }

  #newWal(): LocalLogWriter {
    return new LocalLogWriter({
      ...system,
      directory,
      files: this.#files,
      clock: this.#clock,
      logger: createLogger('test', 'silent'),
      limits: {
        ...{ groupBytesMax: 12_000, groupFramesMax: 7, copiedPayloadBytesMax: 200, scanBufferBytes: 4_096 },
        // At some starts, frames come before anything is recovered.
        recoveryWaitMs: this.#random.fraction() < 0.5 ? 0 : 1_000,
      },
    })
  }

  #append(log: LogName, bytes: number): void {
    const id = this.#sent.length
    const payload = Buffer.alloc(bytes + 5, `${id},`)
    const sent: Sent = { log, payload, ackedSeq: undefined }
    this.#sent.push(sent)
    const frame: FrameInput = {
      layout: 'single',
      receivedAtMicros: this.#clock.now() * 1_000,
      recordCount: 1,
      envelope: Buffer.from(String(id)),
      payload: [payload.subarray(0, bytes >> 1), payload.subarray(bytes >> 1)],
    }
    const answered = this.#wal.append(log, frame).then(
      ({ seq }) => {
        sent.ackedSeq = seq
      },
      () => undefined,
    )
    this.#pending.push(answered)
  }

  async #deliver(share: number): Promise<void> {
    const segments = new LocalSegmentSource({ ...system, directory, files: this.#files })
    for (const log of logNames) {
      const { isClosed, segments: found } = await segments.readLog(log)
      if (isClosed)
        expect(
          found.filter(({ state }) => state === 'open'),
          'a closed log has no open segment',
        ).toEqual([])
    }
    for (const segment of await segments.list()) {
      expect(segment.state, 'a crash leaves no damage').not.toBe('quarantined')
      if (segment.state !== 'sealed' || this.#random.fraction() > share) continue
      const name = `${segment.logName}/${segment.seq}-${segment.incarnation}`
      if (!this.#delivered.has(name)) this.#delivered.set(name, { segment, ids: await this.#read(segments, segment) })
      await segments.remove(segment)
    }
  }

  async #read(segments: LocalSegmentSource, segment: SegmentRef): Promise<readonly number[]> {
    const ids: number[] = []
    const reader = await segments.open(segment)
    for await (const frames of reader.frames(2_000)) {
      for (const { envelope, payload } of frames) {
        const id = Number(Buffer.from(envelope).toString())
        const sent = this.#sent[id]
        expect(sent?.log).toBe(segment.logName)
        expect(sent?.payload.equals(payload), `frame ${id} is as it was sent`).toBe(true)
        ids.push(id)
      }
    }
    expect(ids.length, 'no segment is empty').toBeGreaterThan(0)
    await reader.close()
    return ids
  }

  async #quiet(): Promise<void> {
    await Promise.all(this.#pending.splice(0))
  }

  #decide(operation: DiskOperation): Fault | undefined {
    if (this.#crashIn !== undefined && this.#crashIn.operations-- <= 0) {
      const { fault } = this.#crashIn
      this.#crashIn = undefined
      this.#crashes += 1
      return fault
    }
    const armed = this.#faults.find(({ kind }) => kind === operation.kind)
    if (armed === undefined || armed.skip-- > 0) return undefined
    armed.times -= 1
    if (armed.times <= 0) this.#faults = this.#faults.filter((other) => other !== armed)
    return armed.fault
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'code' in error
}
