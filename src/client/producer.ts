/**
 * Sends records in batches, and says which are stored.
 *
 * Owns: what waits in memory, when a batch is sent, the end of each send. Does not own: requests and their repetition (delivery.ts).
 * Law: a send resolves only after its records are as safe as the producer was told. They are in memory until they are on the disk of a node.
 */
import { Bound, type CallOptions } from './bound.ts'
import { CommitWatch } from './commit-watch.ts'
import { deferred } from './deferred.ts'
import { Delivery, type Part, type Receipt } from './delivery.ts'
import { InletError } from './errors.ts'
import { encodeRecord, type SendableRecord } from './record.ts'
import type { Fetch } from './sender.ts'

export type ProducerOptions = {
  /** Address of ingest, such as `https://line-1.eu.ingest.example.com`. In a region of several nodes, that of one of them. */
  readonly url: string | URL
  /** API key of scope `ingest`. */
  readonly apiKey: string
  /** Id of the endpoint. Not needed if the address names it, or if the key is for one endpoint only. */
  readonly endpoint?: string | undefined
  /** A batch is sent as soon as it has that many bytes, before compression: 1 MiB if not set. */
  readonly batchBytesMax?: number | undefined
  /** … or that many records: 10 000 if not set. */
  readonly batchRecordsMax?: number | undefined
  /** … or its first record is that old: 50 ms if not set. */
  readonly lingerMs?: number | undefined
  /** Requests at the same time: 1 if not set. With 1, records are stored in the order in which they were sent. */
  readonly concurrency?: number | undefined
  /** Bound of the records in memory, those on their way included: 64 MiB if not set. */
  readonly bufferBytesMax?: number | undefined
  /** Behaviour of a send while the memory is full: wait for room, which is the default, or reject with a `BufferFullError`. */
  readonly whenFull?: 'wait' | 'reject' | undefined
  /** Requests are compressed with gzip, if not set. */
  readonly compression?: 'gzip' | 'none' | undefined
  /**
   * When a send resolves: once its record is on the `disk` of a node, `copied` to the copy store as well, or `committed`, so that it is readable
   * in the bucket. If not set, what the endpoint says.
   */
  readonly acknowledgement?: 'disk' | 'copied' | 'committed' | undefined
  /** How long a batch is attempted before its sends reject, and how long its commit is waited for: 5 minutes if not set, at most 23 hours. */
  readonly deliveryTimeoutMs?: number | undefined
  /** Bound of one request, beside the wait for a commit: 60 s if not set. */
  readonly requestTimeoutMs?: number | undefined
  /** Replaces the `fetch` of the platform. */
  readonly fetch?: Fetch | undefined
}

/** There is no room for the record in memory. Only with `whenFull: 'reject'`. */
export class BufferFullError extends InletError {
  override readonly name = 'BufferFullError'
}

/** The producer was closed. */
export class ClosedError extends InletError {
  override readonly name = 'ClosedError'
}

export type ProducerStats = {
  readonly recordsStored: number
  readonly recordsFailed: number
  /** Sends that have not ended, those that wait for their commit included. */
  readonly recordsPending: number
  /** Memory that they take, without those that wait for room. */
  readonly bytesBuffered: number
  /** Bodies of requests, compressed, repetitions included. */
  readonly bytesSent: number
  readonly requests: number
  /** Requests that failed and were to be repeated. */
  readonly retries: number
  /** Repetitions that were stored already. */
  readonly replays: number
  /** Batches that the server found too large. */
  readonly splits: number
}

/** The send of a record that has not ended. */
type Send = { readonly resolve: (receipt: Receipt) => void; readonly reject: (error: unknown) => void }

type Entry = Send & { readonly line: Uint8Array<ArrayBuffer> }

/** Records that are stored, and wait for their commit. */
type Uncommitted = { readonly first: number; readonly sends: readonly Send[] }

type OpenBatch = { readonly first: number; readonly entries: Entry[]; readonly since: number; bytes: number }

type Limits = Readonly<
  Record<'batchBytesMax' | 'batchRecordsMax' | 'lingerMs' | 'concurrency' | 'bufferBytesMax' | 'deliveryTimeoutMs', number>
>

/** Memory of an entry beside its bytes. */
const entryBytes = 200
const hourMs = 3_600_000

/**
 * Creates a producer: it gathers records, and sends them compressed, with repetitions that store nothing twice.
 *
 * ```ts
 * const producer = createProducer({ url: 'http://127.0.0.1:8081', apiKey: 'ing_live_…' })
 * await producer.send({ event: 'signup' }) // resolves when it is on disk
 * await producer.close()
 * ```
 */
export function createProducer(options: ProducerOptions): Producer {
  return new Producer(options)
}

export class Producer {
  readonly #delivery: Delivery
  readonly #limits: Limits
  readonly #whenFull: 'wait' | 'reject'
  /** Idempotency keys begin with it. */
  readonly #id = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
  readonly #closing = new AbortController()
  /** Sends that wait for room, the oldest first. */
  readonly #waiting = new Set<Entry>()
  #open: OpenBatch | undefined
  #lingerTimer: ReturnType<typeof setTimeout> | undefined
  /** Full batches that wait for a request, the oldest first. */
  readonly #full: OpenBatch[] = []
  readonly #inFlight = new Set<OpenBatch>()
  readonly #uncommitted = new Set<Uncommitted>()
  /** Undefined: sends resolve without their commit. */
  readonly #commits: CommitWatch | undefined
  #bytesBuffered = 0
  /** Entries so far that got room. */
  #admitted = 0
  #batches = 0
  /** Entries before this number are sent without waiting for more. */
  #flushBefore = 0
  #stored = 0
  #failed = 0
  #closed: Promise<void> | undefined
  /** Nothing is sent any more. */
  #hasEnded = false
  /** Called whenever sends have ended. */
  readonly #watchers = new Set<() => void>()

  /** See `createProducer`. */
  constructor(options: ProducerOptions) {
    const { url, apiKey, endpoint, acknowledgement, compression = 'gzip', requestTimeoutMs = 60_000 } = options
    const { fetch: send = fetch, whenFull = 'wait' } = options
    const target = { url, apiKey, endpoint, fetch: (...request: Parameters<Fetch>) => send(...request) }
    const level = acknowledgement === 'committed' ? undefined : acknowledgement
    this.#delivery = new Delivery({ ...target, acknowledgement: level, compression, requestTimeoutMs })
    this.#whenFull = whenFull
    this.#limits = {
      batchBytesMax: within('batchBytesMax', options.batchBytesMax, 1024 * 1024, 1, 1024 ** 3),
      batchRecordsMax: within('batchRecordsMax', options.batchRecordsMax, 10_000, 1, 1_000_000),
      lingerMs: within('lingerMs', options.lingerMs, 50, 0, hourMs),
      concurrency: within('concurrency', options.concurrency, 1, 1, 256),
      bufferBytesMax: within('bufferBytesMax', options.bufferBytesMax, 64 * 1024 * 1024, 1, Number.MAX_SAFE_INTEGER),
      deliveryTimeoutMs: within('deliveryTimeoutMs', options.deliveryTimeoutMs, 5 * 60_000, 1, 23 * hourMs),
    }
    if (acknowledgement === 'committed') {
      const { deliveryTimeoutMs: timeoutMs } = this.#limits
      this.#commits = new CommitWatch({ ...target, requestTimeoutMs, timeoutMs, signal: this.#closing.signal })
    }
  }

  /**
   * Sends a record, together with others. Resolves when it is on disk, with the segment that holds it, or as `acknowledgement` says: then with
   * the `CommittedReceipt`. Rejects with a `RecordError` if it
   * cannot be sent, a `BufferFullError`, a `ClosedError`, or a `DeliveryError` if it was not acknowledged in time.
   */
  async send(record: SendableRecord): Promise<Receipt> {
    const line = encodeRecord(record)
    if (this.#closed !== undefined) throw new ClosedError('the producer is closed')
    const { promise, resolve, reject } = deferred<Receipt>()
    const entry = { line, resolve, reject }
    if (this.#waiting.size === 0 && this.#hasRoom(entry)) {
      this.#admit(entry)
      this.#pump()
    } else if (this.#whenFull === 'wait') this.#waiting.add(entry)
    else
      throw new BufferFullError(`${this.#bytesBuffered} bytes wait to be sent: at most ${this.#limits.bufferBytesMax} are kept`)
    return promise
  }

  /** Resolves when a send would not have to wait for room. Await it in a loop that does not await each send. */
  async ready(): Promise<void> {
    await this.#until(() => this.#waiting.size === 0 && this.#bytesBuffered < this.#limits.bufferBytesMax)
  }

  /**
   * Sends all records, no faster than they are stored. Resolves with their number when all are on disk. At the first one that fails it reads
   * no more, and rejects with its error after the others before it have ended.
   */
  async sendAll(records: Iterable<SendableRecord> | AsyncIterable<SendableRecord>): Promise<number> {
    let sent = 0
    const pending = new Set<Promise<unknown>>()
    const failures: unknown[] = []
    for await (const record of records) {
      await this.ready()
      if (failures.length > 0) break
      sent += 1
      const sending: Promise<unknown> = this.send(record)
        .catch((error: unknown) => failures.push(error))
        .finally(() => pending.delete(sending))
      pending.add(sending)
    }
    await this.flush({ timeoutMs: 24 * hourMs })
    await Promise.all(pending)
    if (failures.length > 0) throw failures[0]
    return sent
  }

  /**
   * Sends at once what waits for more records, and resolves when every send before this call has ended, whether it resolved or rejected.
   * Throws a `TimeoutError` after `timeoutMs`, which is the delivery timeout if not set; the sends go on.
   */
  async flush({ timeoutMs = this.#limits.deliveryTimeoutMs + 60_000, signal }: CallOptions = {}): Promise<void> {
    const end = this.#admitted + this.#waiting.size
    this.#flushBefore = Math.max(this.#flushBefore, end)
    this.#pump()
    const bound = new Bound('flushing the producer', timeoutMs, signal)
    try {
      await bound.wait(this.#until(() => this.#hasEnded || this.#firstPending >= end))
    } finally {
      bound.release()
    }
  }

  /**
   * Accepts no more records, and waits for those that it has. After `timeoutMs` (30 s if not set, or the delivery timeout for those that wait for
   * their commit) it gives up: the rest rejects, and so does this call, with a `TimeoutError`.
   */
  close({ timeoutMs, signal }: CallOptions = {}): Promise<void> {
    const { deliveryTimeoutMs } = this.#limits
    timeoutMs ??= this.#commits === undefined ? 30_000 : deliveryTimeoutMs
    this.#closed ??= this.flush({ timeoutMs, signal }).finally(() => this.#end())
    return this.#closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  get stats(): ProducerStats {
    const pending = [...this.#inFlight, ...this.#full, ...(this.#open === undefined ? [] : [this.#open])]
    const sends = [...pending.map(({ entries }) => entries), ...[...this.#uncommitted].map((waiting) => waiting.sends)]
    const { bytesSent, requests, retries, replays, splits } = this.#delivery.counters
    return {
      recordsStored: this.#stored,
      recordsFailed: this.#failed,
      recordsPending: sends.reduce((sum, { length }) => sum + length, this.#waiting.size),
      bytesBuffered: this.#bytesBuffered,
      ...{ bytesSent, requests, retries, replays, splits },
    }
  }

  /** The number of the oldest entry that has not ended. Entries that wait for room come after all others. */
  get #firstPending(): number {
    const firsts = [...this.#uncommitted, ...this.#inFlight, ...this.#full].map(({ first }) => first)
    return Math.min(this.#open?.first ?? this.#admitted, ...firsts)
  }

  /** One record always has room, however large it is. */
  #hasRoom({ line }: Entry): boolean {
    return this.#bytesBuffered === 0 || this.#bytesBuffered + line.length + entryBytes <= this.#limits.bufferBytesMax
  }

  #admit(entry: Entry): void {
    const { batchBytesMax, batchRecordsMax, lingerMs } = this.#limits
    this.#bytesBuffered += entry.line.length + entryBytes
    if (this.#open !== undefined && this.#open.bytes + entry.line.length > batchBytesMax) this.#fill(this.#open)
    if (this.#open === undefined) {
      this.#open = { first: this.#admitted, entries: [], since: performance.now(), bytes: 0 }
      this.#lingerTimer = setTimeout(() => this.#pump(true), lingerMs)
    }
    this.#admitted += 1
    this.#open.entries.push(entry)
    this.#open.bytes += entry.line.length
    if (this.#open.entries.length >= batchRecordsMax || this.#open.bytes >= batchBytesMax) this.#fill(this.#open)
  }

  #fill(batch: OpenBatch): void {
    clearTimeout(this.#lingerTimer)
    this.#open = undefined
    this.#full.push(batch)
  }

  /** Sends what is due. A batch that is due but has no free request takes more records. */
  #pump(isDue = false): void {
    while (this.#inFlight.size < this.#limits.concurrency) {
      const open = this.#open
      if (this.#full.length === 0 && open !== undefined) {
        const ageMs = performance.now() - open.since
        if (isDue || ageMs >= this.#limits.lingerMs || open.first < this.#flushBefore) this.#fill(open)
      }
      const batch = this.#full.shift()
      if (batch === undefined) return
      void this.#deliver(batch)
    }
  }

  async #deliver(batch: OpenBatch): Promise<void> {
    this.#inFlight.add(batch)
    const idempotencyKey = `${this.#id}-${this.#batches++}`
    const parts = await this.#delivery.deliver({
      idempotencyKey,
      lines: batch.entries.map(({ line }) => line),
      timeoutMs: this.#limits.deliveryTimeoutMs - (performance.now() - batch.since),
      signal: this.#closing.signal,
    })
    this.#inFlight.delete(batch)
    this.#settle(batch, parts)
    this.#goOn()
  }

  /** Memory, or a request, is free. */
  #goOn(): void {
    for (const entry of this.#waiting) {
      if (!this.#hasRoom(entry)) break
      this.#waiting.delete(entry)
      this.#admit(entry)
    }
    this.#pump()
    for (const watch of this.#watchers) watch()
  }

  #settle({ first, entries, bytes }: OpenBatch, parts: readonly Part[]): void {
    this.#bytesBuffered -= bytes + entries.length * entryBytes
    let index = 0
    for (const part of parts) {
      // Without their lines, which are stored, or sent no more.
      const sends = entries.slice(index, index + part.count).map(({ resolve, reject }) => ({ resolve, reject }))
      if ('error' in part) this.#reject(sends, part.error)
      else if (this.#commits === undefined) this.#resolve(sends, part.receipt)
      else void this.#awaitCommit(this.#commits, { first: first + index, sends }, part.receipt)
      index += part.count
    }
  }

  async #awaitCommit(commits: CommitWatch, stored: Uncommitted, receipt: Receipt): Promise<void> {
    const bytes = stored.sends.length * entryBytes
    this.#bytesBuffered += bytes
    this.#uncommitted.add(stored)
    try {
      this.#resolve(stored.sends, await commits.committed(receipt))
    } catch (error) {
      this.#reject(stored.sends, error)
    }
    this.#uncommitted.delete(stored)
    this.#bytesBuffered -= bytes
    this.#goOn()
  }

  #resolve(sends: readonly Send[], receipt: Receipt): void {
    this.#stored += sends.length
    for (const { resolve } of sends) resolve(receipt)
  }

  #reject(sends: readonly Send[], error: unknown): void {
    this.#failed += sends.length
    for (const { reject } of sends) reject(error)
  }

  /** Rejects everything that is left. What is on its way ends by its signal. */
  #end(): void {
    this.#hasEnded = true
    const error = new ClosedError('the producer was closed before the record was sent')
    const batches = [...this.#full.splice(0), ...(this.#open === undefined ? [] : [this.#open])]
    clearTimeout(this.#lingerTimer)
    this.#open = undefined
    const left = [...batches.flatMap(({ entries }) => entries), ...this.#waiting]
    this.#waiting.clear()
    this.#failed += left.length
    this.#bytesBuffered -= batches.reduce((sum, { bytes, entries }) => sum + bytes + entries.length * entryBytes, 0)
    for (const entry of left) entry.reject(error)
    this.#closing.abort(new ClosedError('the producer was closed'))
    for (const watch of this.#watchers) watch()
  }

  #until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const watch = () => {
        if (!condition()) return
        this.#watchers.delete(watch)
        resolve()
      }
      this.#watchers.add(watch)
      watch()
    })
  }
}

function within(name: string, given: number | undefined, otherwise: number, min: number, max: number): number {
  const value = given ?? otherwise
  if (value >= min && value <= max) return value
  throw new InletError(`${name} must be from ${min} to ${max}, not ${value}`)
}
