/**
 * The requests with an idempotency key that this node stored in the last 24 hours.
 *
 * Owns: whether a request is new; that a crash or a restart forgets none. Does not own: the records, which are in the log.
 * Law: a request is known once its frame is durable. Until its segment is sealed, the frame is the memory: its envelope has the key, and
 * after a crash it is read again. Before the segment is sealed, so that delivery may remove it, the request is on disk here. None is
 * forgotten because a clock says something else than before.
 */
import { Buffer } from 'node:buffer'
import type { KeyPart } from '#copies/key-copies.ts'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode, type Files } from '#lib/files.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { type Frame, type FrameInput, payloadBytes } from '#log/frame.ts'
import type { RecoveryObserver, SealObserver } from '#log/seal-observer.ts'
import { idempotencyKeyIn } from '#model/record-envelope.ts'
import type { CheckedClock } from '#node/checked-clock.ts'
import { type Bound, FairShares, type MemberEndpoint, memberOf } from '../gate/fair-shares.ts'
import { gateLimits } from '../gate/limits.ts'
import type { RequestMemory, Stored } from '../gate/receipt.ts'
import { Rejection, tryAgain } from '../gate/rejection.ts'
import { AdoptedRequests } from './adopted-requests.ts'
import { KeysBySegment } from './keys-by-segment.ts'
import { storedRequestLimits } from './limits.ts'
import { digestsOf, type RequestDigests } from './request-digests.ts'
import { HOUR_MS, RequestFiles, UnreadableRequestsError } from './request-files.ts'
import { encodeStoredRequest, STORED_REQUEST_BYTES, type StoredRequest } from './stored-request.ts'

export type StoredRequestsOptions = {
  readonly directory: string
  /** With a directory for each lost node that this one has taken over. */
  readonly adoptedDirectory?: string
  /** How many are remembered at most. The endpoints share them. */
  readonly max: number
  readonly files: Files
  readonly clock: Clock & Pick<CheckedClock, 'surelyBefore'>
  readonly logger: Logger
}

const noBytes = Buffer.alloc(0)

/** An endpoint whose requests with an idempotency key are refused. */
export type RefusedEndpoint = { readonly endpoint_id: string; readonly reason: string }

export class StoredRequests implements Service, SealObserver, RequestMemory {
  readonly name = 'stored requests'
  readonly #options: StoredRequestsOptions
  readonly #shares: FairShares
  readonly #written: RequestFiles
  readonly #adopted: AdoptedRequests | undefined
  /** For the copy store. */
  readonly keys: KeysBySegment
  /** Durable in the log, but in no file of this directory yet. By id. */
  readonly #unwritten = new Map<string, StoredRequest>()
  /** The ids of the intact requests of each segment that lost others, and whose requests are in the files still. By endpoint and seq. */
  readonly #lost = new Map<string, ReadonlySet<string>>()
  /** On their way to the log. */
  readonly #appending = new Map<FrameInput, RequestDigests>()
  /** The last request of each id that has no answer yet. */
  readonly #running = new Map<string, Promise<unknown>>()
  #writing: Promise<void> | undefined
  #failure: unknown
  /** Endpoints with a request that was refused since the keys cannot be read. */
  readonly #refused = new Set<string>()
  readonly #upkeep: Periodic
  #unwatch: () => void = () => undefined

  constructor(options: StoredRequestsOptions) {
    const { max, directory, adoptedDirectory, files, clock, logger } = options
    this.#options = options
    const common = { files, logger, clock }
    this.#written = new RequestFiles({
      ...common,
      ...{ directory, title: 'stored-requests' },
      onOpened: (counts) => {
        for (const [endpointId, count] of counts) this.#shares.share(endpointId).force(count)
      },
      onRemoved: (counts) => {
        for (const [endpointId, count] of counts) this.#shares.share(endpointId).release(count)
      },
    })
    this.#adopted =
      adoptedDirectory === undefined ? undefined : new AdoptedRequests({ ...common, max, directory: adoptedDirectory })
    this.keys = new KeysBySegment(this.#written, () => this.requireWritten())
    this.#shares = new FairShares(max, { reserve: Math.floor(max * gateLimits.partForNewcomers) })
    this.#upkeep = new Periodic({
      name: 'stored requests upkeep',
      intervalMs: storedRequestLimits.upkeepMs,
      run: () => this.#runUpkeep(),
      failure: 'idempotency keys cannot be written or removed',
      clock,
      logger,
    })
  }

  get count(): number {
    return this.#shares.used + (this.#adopted?.count ?? 0)
  }

  /** Memory of the indexes. */
  get indexBytes(): number {
    return this.#written.indexBytes + (this.#adopted?.indexBytes ?? 0)
  }

  /** Keys that were known and cannot be read any more: a request that is repeated with one is stored again. */
  get damaged(): number {
    return this.#written.damaged + (this.#adopted?.damaged ?? 0)
  }

  /** Problems with the files, for the operator of the node. */
  problems(): readonly string[] {
    const unwritten =
      this.#failure === undefined
        ? []
        : [
            `idempotency keys cannot be written (${errorCode(this.#failure) ?? errorMessage(this.#failure)}): new ones are refused`,
          ]
    const lost =
      this.damaged === 0
        ? []
        : [
            `${this.damaged} idempotency keys in the directories stored-requests and adopted-requests are damaged or gone: requests that are repeated with them are stored again; look for errors of the disk`,
          ]
    return [...this.#unreadable(), ...unwritten, ...lost, ...(this.#adopted?.unknown() ?? [])]
  }

  /** Endpoints with requests that were refused because keys cannot be read. */
  refused(): readonly RefusedEndpoint[] {
    const [problem] = this.#unreadable()
    return problem === undefined ? [] : [...this.#refused].map((endpoint_id) => ({ endpoint_id, reason: problem }))
  }

  get poolUsedRatio(): number {
    return this.#shares.poolUsedRatio
  }

  #unreadable(): readonly string[] {
    return [...this.#written.problems(), ...(this.#adopted?.problems() ?? [])]
  }

  async start(): Promise<void> {
    await this.#written.prepare()
    await this.#adopted?.refresh().catch((error: unknown) => {
      this.#options.logger.warn({ reason: errorMessage(error) }, 'idempotency keys of lost nodes are not known yet')
    })
    await this.#upkeep.start()
    this.#unwatch = this.#adopted?.watch(() => this.#upkeep.runNow()) ?? this.#unwatch
  }

  /** Divides the room among these endpoints. */
  configure(endpoints: readonly MemberEndpoint[]): void {
    this.#shares.configure(endpoints.map(memberOf))
  }

  async once(
    endpointId: string,
    key: string,
    frame: FrameInput,
    append: () => Promise<{ readonly seq: number }>,
  ): Promise<Stored> {
    const request = digestsOf(endpointId, key, frame)
    const id = textOf(request)
    const before = this.#running.get(id)
    const stored = this.#storeAfter(before, request, frame, append)
    const settled = stored.catch(() => undefined)
    this.#running.set(id, settled)
    try {
      return await stored
    } finally {
      if (this.#running.get(id) === settled) this.#running.delete(id)
    }
  }

  async keyOf(endpointId: string, key: string): Promise<KeyPart | undefined> {
    const found = await this.#find(digestsOf(endpointId, key, { envelope: noBytes, payload: [] }))
    if (found === undefined || found.nodeId !== undefined) return undefined
    const bytes = Buffer.alloc(STORED_REQUEST_BYTES)
    encodeStoredRequest(found, bytes, 0)
    return { hour: hourOf(found.storedAtMs), bytes }
  }

  observes(frame: FrameInput): boolean {
    return this.#appending.has(frame)
  }

  appended(seq: number, frames: readonly FrameInput[]): void {
    for (const frame of frames) {
      const request = this.#appending.get(frame)
      if (request === undefined) continue
      this.#add({
        ...request,
        seq,
        records: frame.recordCount,
        bytes: payloadBytes(frame),
        storedAtMs: this.#options.clock.now(),
      })
    }
  }

  /** A request whose records are lost is new again. */
  recovering(logName: string, seq: number): RecoveryObserver {
    const intact = new Set<string>()
    return {
      recovered: (frame) => {
        const id = this.#recovered(logName, seq, frame)
        if (id !== undefined) intact.add(id)
      },
      lost: async () => {
        this.#lost.set(segmentOf({ endpointId: logName, seq }), intact)
        await this.#write()
      },
    }
  }

  /** Returns undefined if there is nothing to wait for. Never rejects: a full disk must not hold the segments whose delivery makes room. */
  beforeSeal(): Promise<void> | undefined {
    // Requests that are being written may not be synced yet.
    return this.#unwritten.size === 0 ? this.#writing : this.#write()
  }

  /** Throws while requests of sealed segments may be in no file. */
  requireWritten(): void {
    if (this.#failure !== undefined) throw new Error('idempotency keys cannot be written', { cause: this.#failure })
  }

  async stop(): Promise<void> {
    this.#unwatch()
    await this.#upkeep.stop()
    await this.beforeSeal()
    await this.#written.writeCounts(true).catch(() => undefined)
    await this.#written.close()
    await this.#adopted?.close()
  }

  async #storeAfter(
    other: Promise<unknown> | undefined,
    request: RequestDigests,
    frame: FrameInput,
    append: () => Promise<{ readonly seq: number }>,
  ): Promise<Stored> {
    await other
    const known = await this.#find(request)
    if (known !== undefined) {
      const { seq, records, bytes, nodeId, isOnDisk } = known
      if (known.body.equals(request.body)) return { seq, records, bytes, nodeId, isOnDisk, isRepeated: true }
      throw new Rejection(
        'idempotency_key_reused',
        'the endpoint stored other records with this idempotency key within 24 hours; send each request with a key of its own',
        { field: 'idempotency-key' },
      )
    }
    this.#requireRoom(request.endpointId)
    this.#appending.set(frame, request)
    try {
      const { seq } = await append()
      if (this.#unwritten.size >= storedRequestLimits.unwrittenMax) void this.#write()
      return { seq, records: frame.recordCount, bytes: payloadBytes(frame), isRepeated: false }
    } finally {
      this.#appending.delete(frame)
    }
  }

  /** Returns the id of the request in a frame that a crash left in an unsealed segment; undefined for one without a key. */
  #recovered(logName: string, seq: number, { envelope, payload, receivedAtMicros, recordCount }: Frame): string | undefined {
    const key = idempotencyKeyIn(envelope)
    if (key === undefined) return undefined
    const request = digestsOf(logName, key, { envelope, payload: [payload] })
    const id = textOf(request)
    if (!this.#unwritten.has(id))
      this.#add({ ...request, seq, records: recordCount, bytes: payload.byteLength, storedAtMs: receivedAtMicros / 1000 })
    return id
  }

  #isLost(request: StoredRequest): boolean {
    const intact = this.#lost.size === 0 ? undefined : this.#lost.get(segmentOf(request))
    return intact !== undefined && !intact.has(textOf(request))
  }

  async #find(request: RequestDigests): Promise<(StoredRequest & Pick<Stored, 'nodeId' | 'isOnDisk'>) | undefined> {
    const unwritten = this.#unwritten.get(textOf(request))
    if (unwritten !== undefined) return this.#isOld(unwritten) || this.#isLost(unwritten) ? undefined : unwritten
    try {
      let hidden: unknown
      const written = await this.#written.find(request.id).catch((error: unknown) => {
        hidden = error
        return undefined
      })
      if (written !== undefined && !this.#isLost(written)) return written
      const adopted = await this.#adopted?.find(request.id)
      if (adopted === undefined && hidden !== undefined) throw hidden
      return adopted
    } catch (error) {
      if (!(error instanceof UnreadableRequestsError)) throw error
      this.#refused.add(request.endpointId)
      throw tryAgain('not_stored', error.message, gateLimits.retryDiskSeconds, { cause: error })
    }
  }

  #requireRoom(endpointId: string): void {
    if (this.#failure !== undefined) {
      throw tryAgain('not_stored', 'this node cannot store idempotency keys now', gateLimits.retryDiskSeconds, {
        cause: this.#failure,
      })
    }
    const bound = this.#shares.share(endpointId).boundOn(1)
    if (bound === undefined) return
    throw tryAgain('no_room', `${whose[bound]} of the idempotency keys that this node remembers`, gateLimits.retryDiskSeconds)
  }

  #add(request: StoredRequest): void {
    this.#unwritten.set(textOf(request), request)
    this.#shares.share(request.endpointId).force(1)
  }

  /** One at a time. What comes while it runs is written by the next one, for which everybody waits who came later. */
  #write(): Promise<void> {
    const writing = (this.#writing ?? Promise.resolve())
      .then(() => this.#writeOnce())
      .finally(() => {
        if (this.#writing === writing) this.#writing = undefined
      })
    this.#writing = writing
    return writing
  }

  async #writeOnce(): Promise<void> {
    const appended: StoredRequest[] = []
    try {
      await this.#forgetLost()
      for (const [hour, requests] of Map.groupBy(this.#unwritten.values(), ({ storedAtMs }) => hourOf(storedAtMs))) {
        await this.#written.append(hour, requests)
        appended.push(...requests)
      }
      await this.#written.sync()
      for (const request of appended) this.#unwritten.delete(textOf(request))
      this.#failure = undefined
    } catch (error) {
      // After a failed sync only bytes that are written again are written at all. So these are in their files once more than they count.
      for (const { endpointId } of appended) this.#shares.share(endpointId).force(1)
      if (this.#failure === undefined) this.#options.logger.error({ err: error }, 'idempotency keys not written; retrying')
      this.#failure = error
    }
  }

  /** Until it succeeds, `#isLost` tells. */
  async #forgetLost(): Promise<void> {
    const segments = [...this.#lost]
    if (segments.length === 0) return
    for (const [id, request] of this.#unwritten) {
      if (!this.#isLost(request)) continue
      this.#unwritten.delete(id)
      this.#shares.share(request.endpointId).release(1)
    }
    const keys = await this.#written.forget((request) => this.#isLost(request))
    for (const [segment, intact] of segments) if (this.#lost.get(segment) === intact) this.#lost.delete(segment)
    if (keys > 0) this.#options.logger.warn({ keys }, 'idempotency keys of lost records forgotten: these requests are new again')
  }

  async #runUpkeep(): Promise<void> {
    await this.beforeSeal()
    if (!this.#written.isReadable) await this.#written.refresh()
    await this.#written.removeOld()
    await this.#written.writeCounts()
    await this.#adopted?.refresh()
    if (this.#written.isReadable && this.#adopted?.isReadable !== false) this.#refused.clear()
  }

  #isOld({ storedAtMs }: StoredRequest): boolean {
    return storedAtMs < this.#written.oldestMs(hourOf(storedAtMs))
  }
}

const whose: Readonly<Record<Bound, string>> = {
  endpoint: 'the endpoint uses up its share',
  account: 'the account uses up its share',
  node: 'the endpoints use up all',
}

function hourOf(timeMs: number): number {
  return Math.floor(timeMs / HOUR_MS)
}

function segmentOf({ endpointId, seq }: Pick<StoredRequest, 'endpointId' | 'seq'>): string {
  return `${endpointId} ${seq}`
}

function textOf({ id }: RequestDigests): string {
  return id.toString('latin1')
}
