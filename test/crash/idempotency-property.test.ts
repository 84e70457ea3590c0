/**
 * Requests with idempotency keys on a disk that forgets: kills and power cuts at random operations, seals, deliveries, and repetitions.
 *
 * Law: whatever happens, the records of a key are delivered at most once, exactly once if they were acknowledged, and every acknowledgement
 * of a key has the same receipt.
 */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { appendOnce } from '#ingest/gate/append-once.ts'
import { noCopyStore } from '#ingest/gate/copied.ts'
import { StoredRequests } from '#ingest/idempotency/stored-requests.ts'
import { type Random, seededRandom } from '#lib/random.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { encodeEnvelope, idempotencyKeyIn } from '#model/record-envelope.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { type Fault, FaultyDisk } from '../support/faulty-files.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { runs } from '../support/thorough.ts'

const logNames = ['0b8fbf52-0d6e-4f0f-9a83-7f8f9c1d2e3f', '11111111-2222-4333-8444-555555555555'] as const

type Step =
  | { readonly do: 'send'; readonly log: 0 | 1; readonly keys: readonly number[]; readonly awaited: boolean }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'deliver' }
  | { readonly do: 'crash'; readonly operations: number; readonly fault: Fault }
  | { readonly do: 'restart' }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      log: fc.constantFrom(0 as const, 1 as const),
      keys: fc.array(fc.nat(9), { minLength: 1, maxLength: 6 }),
      awaited: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 1_000, 3_000, 11_000) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('deliver' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('crash' as const),
      operations: fc.integer({ min: 0, max: 40 }),
      fault: fc.constantFrom<Fault[]>('crash before', 'crash after', 'kill before', 'kill after'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
)

test('the records of a key are stored once, whatever crashes between its repetitions', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 50 }), fc.integer(), async (steps, seed) => {
      const world = new World(seed)
      await world.start()
      for (const next of steps) await world.take(next)
      await world.check()
    }),
    { numRuns: runs(60, 400) },
  )
})

class World {
  readonly #disk: FaultyDisk
  readonly #random: Random
  readonly #clock = new ManualClock()
  /** Receipts by log and key. */
  readonly #receipts = new Map<string, Set<number>>()
  /** By log and key: how often it was delivered. */
  readonly #delivered = new Map<string, number>()
  readonly #segments = new Set<string>()
  #pending: Promise<void>[] = []
  #crashIn: { operations: number; readonly fault: Fault } | undefined
  #crashes = 0
  #wal: LocalLogWriter
  #requests: StoredRequests

  constructor(seed: number) {
    this.#random = seededRandom(seed)
    this.#disk = new FaultyDisk(this.#random)
    this.#disk.fault = () => this.#decide()
    ;[this.#wal, this.#requests] = this.#create()
  }

  async start(): Promise<void> {
    for (;;) {
      const crashes = this.#crashes
      ;[this.#wal, this.#requests] = this.#create()
      try {
        await this.#requests.start()
        await this.#wal.start()
      } catch (error) {
        if (!(error instanceof Error && 'code' in error)) throw error
        continue
      }
      if (crashes !== this.#crashes) continue
      for (const log of logNames) this.#wal.configure(log, { segmentBytes: 5_000, segmentMaxAgeMs: 2_000, seqAbove: -1 })
      return
    }
  }

  async take(next: Step): Promise<void> {
    const crashes = this.#crashes
    switch (next.do) {
      case 'send':
        for (const key of next.keys) this.#pending.push(this.#send(logNames[next.log], `key-${key}`))
        if (next.awaited) await this.#quiet()
        break
      case 'wait':
        this.#clock.advance(next.ms)
        for (let turn = 0; turn < 30; turn += 1) await new Promise((resolve) => setImmediate(resolve))
        break
      case 'deliver':
        await this.#deliver().catch((error: unknown) => {
          if (!(error instanceof Error && 'code' in error)) throw error
        })
        break
      case 'crash':
        this.#crashIn = { operations: next.operations, fault: next.fault }
        break
      case 'restart':
        await this.#stop()
        await this.start()
        break
    }
    if (crashes !== this.#crashes) {
      await this.#quiet()
      await this.start()
    }
  }

  async check(): Promise<void> {
    await this.#quiet()
    this.#crashIn = undefined
    await this.#stop()
    await this.start()
    // Every key once more: those that were stored are still known.
    for (const log of logNames) for (let key = 0; key < 10; key += 1) this.#pending.push(this.#send(log, `key-${key}`))
    await this.#quiet()
    await this.#stop()
    await this.#deliver()
    for (const log of logNames) {
      for (let key = 0; key < 10; key += 1) {
        const name = `${log} key-${key}`
        expect(this.#delivered.get(name), `${name} is delivered once`).toBe(1)
        expect([...(this.#receipts.get(name) ?? [])], `${name} has one receipt`).toHaveLength(1)
      }
    }
  }

  async #send(log: string, key: string): Promise<void> {
    const payload = [Buffer.from(`{"key":"${key}","filler":"${'x'.repeat(key.length * 40)}"}`)]
    const frame = {
      layout: 'single',
      receivedAtMicros: this.#clock.now() * 1000,
      recordCount: 1,
      envelope: encodeEnvelope({ protocol: 'http', idempotency_key: key }),
      payload,
    } as const
    const wal = this.#wal
    const commitWaits = { wait: () => ({ delivered: Promise.resolve(undefined), end: () => undefined }) }
    const gate = { log: wal, storedRequests: this.#requests, copies: noCopyStore, commitWaits }
    const append = async () => await wal.append(log, frame)
    const receipt = await appendOnce(gate, { endpoint: { id: log, account_id: 'account', copies: 1 }, key, frame, append }).catch(
      () => undefined,
    )
    if (receipt === undefined) return
    const name = `${log} ${key}`
    this.#receipts.set(name, (this.#receipts.get(name) ?? new Set()).add(receipt.seq))
  }

  async #deliver(): Promise<void> {
    const segments = new LocalSegmentSource({ ...system, directory: '/data/wal', files: this.#disk.mount() })
    for (const segment of await segments.list()) {
      expect(segment.state).not.toBe('quarantined')
      if (segment.state !== 'sealed') continue
      const name = `${segment.logName}/${segment.seq}-${segment.incarnation}`
      if (!this.#segments.has(name)) {
        const keys: string[] = []
        const reader = await segments.open(segment)
        for await (const frames of reader.frames(2_000)) {
          keys.push(...frames.map(({ envelope }) => `${segment.logName} ${idempotencyKeyIn(envelope)}`))
        }
        await reader.close()
        this.#segments.add(name)
        for (const key of keys) this.#delivered.set(key, (this.#delivered.get(key) ?? 0) + 1)
      }
      await segments.remove(segment)
    }
  }

  async #stop(): Promise<void> {
    await this.#wal.stop(new AbortController().signal)
    await this.#requests.stop().catch(() => undefined)
    await this.#quiet()
  }

  async #quiet(): Promise<void> {
    await Promise.all(this.#pending.splice(0))
  }

  #create(): [LocalLogWriter, StoredRequests] {
    // The process before may live on, if the crash fell on an operation that failed by itself. Two never share a directory.
    this.#disk.kill()
    const common = { files: this.#disk.mount(), clock: this.#clock, logger: createLogger('test', 'silent') }
    const clock = new CheckedClock({ machine: this.#clock, logger: common.logger })
    const requests = new StoredRequests({ ...common, clock, directory: '/data/stored-requests', max: 1_000 })
    // At some starts, requests come before anything is recovered.
    const limits = { scanBufferBytes: 4_096, recoveryWaitMs: this.#random.fraction() < 0.5 ? 0 : 1_000 }
    return [new LocalLogWriter({ ...system, ...common, directory: '/data/wal', observer: requests, limits }), requests]
  }

  #decide(): Fault | undefined {
    if (this.#crashIn === undefined || this.#crashIn.operations-- > 0) return undefined
    const { fault } = this.#crashIn
    this.#crashIn = undefined
    this.#crashes += 1
    return fault
  }
}
