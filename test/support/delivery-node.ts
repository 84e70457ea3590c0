/** Runs delivery inside the test process, with a real log, buckets that fail on demand and a control whose responses the test sets. */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, readConfig } from '#config/config.ts'
import { type App, startDelivery } from '#delivery/app.ts'
import { type ConversionPool, conversionBounds, createConversionPool } from '#delivery/convert/conversion-pool.ts'
import type { Backlog } from '#delivery/segments/backlog.ts'
import { MiB } from '#lib/bytes.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { type Files, systemFiles } from '#lib/files.ts'
import { Sandbox } from '#lib/sandbox.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { DestinationTarget } from '#model/destination.ts'
import { newId } from '#model/id.ts'
import type { EndpointLag } from '#model/node-protocol.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { BoundView, SnapshotEndpoint } from '#model/snapshot.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { FaultyStores } from './faulty-stores.ts'
import { anEndpoint, aSnapshot, ControlStandIn, nodeToken } from './ingest-node.ts'
import { watchText } from './secrets-in-output.ts'

/** For all nodes of a test file: starting a process takes longer than most tests. Its tasks must not end in a hurry. */
export const conversionPool = createConversionPool({
  clock: systemClock,
  commandLine: (await Sandbox.probe()).confine(conversionBounds(192 * MiB)),
})

/** Shortens waits: back-off happens but takes no time. */
const hurriedClock: Clock = {
  ...systemClock,
  setTimer: (callback, delayMs) => systemClock.setTimer(callback, Math.min(delayMs, 15)),
}

export function aDestination(bucket = 'bucket'): DestinationTarget {
  return {
    id: newId(),
    bucket,
    prefix: '',
    region: 'local',
    role_arn: 'arn:aws:iam::000000000000:role/test',
    external_id: 'external',
    encryption: 'sse-s3',
    kms_key_arn: null,
    checksums: 'standard',
    allowed_buckets: [],
    path_style: false,
  }
}

export function aBoundView(change: Partial<BoundView> = {}): BoundView {
  return {
    binding_id: newId(),
    view_id: newId(),
    name: 'numbers',
    version: 1,
    definition: { columns: [{ name: 'n', type: 'INTEGER', path: '$.n' }] },
    is_required: false,
    activated_at: '2000-01-01T00:00:00.000Z',
    deactivated_at: null,
    canary_start_ts: null,
    ...change,
  }
}

export class DeliveryNode implements AsyncDisposable {
  readonly control: ControlStandIn
  readonly stores: FaultyStores
  readonly config: Config
  readonly directory: string
  /** Lines of the log. */
  readonly log: string[] = []
  /** Used by the next start. */
  files: Files = systemFiles
  conversionPool: ConversionPool = conversionPool
  #app: App | undefined
  #epoch = 0

  private constructor(directory: string, control: ControlStandIn, buckets?: string) {
    this.directory = directory
    this.control = control
    this.config = readConfig({
      INLET_DATA_DIR: directory,
      INLET_NODE_TOKEN: nodeToken,
      INLET_CONTROL_URL: control.url,
      INLET_LOG_LEVEL: 'silent',
    })
    this.stores = new FaultyStores(buckets ?? this.config.paths.buckets)
  }

  /** Another machine with a copy of this one's disk, which reaches the same buckets. It has a control of its own. */
  async copy(): Promise<DeliveryNode> {
    const directory = await mkdtemp(join(tmpdir(), 'inlet-delivery-'))
    await cp(this.config.paths.node, join(directory, 'node'), { recursive: true })
    return new DeliveryNode(directory, await ControlStandIn.start(), this.config.paths.buckets)
  }

  static async create(...endpoints: readonly SnapshotEndpoint[]): Promise<DeliveryNode> {
    const node = new DeliveryNode(await mkdtemp(join(tmpdir(), 'inlet-delivery-')), await ControlStandIn.start())
    node.configure(...endpoints)
    return node
  }

  configure(...endpoints: readonly SnapshotEndpoint[]): void {
    this.#epoch += 1
    this.control.publish(aSnapshot({ epoch: this.#epoch, endpoints: [...endpoints] }))
  }

  /** Seals one segment for each body. */
  seal(endpointId: string, ...bodies: readonly string[]): Promise<void> {
    return this.sealAll(bodies.map((body) => [endpointId, body]))
  }

  /** Seals a segment at that time, in milliseconds since 1970. */
  sealAt(atMs: number, endpointId: string, body: string): Promise<void> {
    return this.sealAll([[endpointId, body]], 1, { ...systemClock, now: () => atMs })
  }

  /** Seals one segment with a frame for each body. */
  sealFrames(endpointId: string, ...bodies: readonly string[]): Promise<void> {
    return this.sealAll(
      bodies.map((body) => [endpointId, body]),
      1024 * 1024,
    )
  }

  /** Seals one segment for each body, all in one run of the log. */
  async sealAll(
    bodies: readonly (readonly [endpointId: string, body: string, envelope?: Uint8Array])[],
    // Smaller than any frame, so the next frame opens a new segment.
    segmentBytes = 1,
    clock = systemClock,
  ): Promise<void> {
    await using log = await this.openLog(segmentBytes, clock)
    for (const [endpointId, body, envelope] of bodies) await log.append(endpointId, body, envelope)
  }

  /** Runs the log. Disposing of it seals what is open. */
  async openLog(segmentBytes = 1024 * 1024, clock = systemClock) {
    // As at a start of ingest: a log has its id before anything else.
    await readOrCreateNodeId(this.config.paths, system)
    const wal = new LocalLogWriter({
      ...system,
      clock,
      directory: this.config.paths.wal,
      logger: createLogger('wal', 'silent'),
    })
    await wal.start()
    return {
      async append(endpointId: string, body: string, envelope = encodeEnvelope({ protocol: 'http' })): Promise<void> {
        wal.configure(endpointId, { segmentBytes, segmentMaxAgeMs: 3_600_000, seqAbove: -1 })
        await wal.append(endpointId, {
          layout: 'lines',
          receivedAtMicros: Date.now() * 1000,
          recordCount: body.split('\n').length,
          envelope,
          payload: [Buffer.from(body)],
        })
      },
      [Symbol.asyncDispose]: () => wal.stop(AbortSignal.timeout(10_000)),
    }
  }

  async start(): Promise<void> {
    const watch = watchText('the log of delivery')
    const write = (line: string) => {
      watch(line)
      this.log.push(line)
    }
    const logger = createLogger('delivery', 'debug', undefined, { write })
    this.#app = await startDelivery(this.config, {
      ...{ logger, clock: hurriedClock, stores: this.stores, files: this.files },
      conversionPool: this.conversionPool,
    })
  }

  async stop(signal = AbortSignal.timeout(10_000)): Promise<void> {
    await this.#app?.stop(signal)
    this.#app = undefined
  }

  get commits(): readonly SegmentCommit[] {
    return this.control.commits
  }

  /** Undefined before the start. */
  backlog(): Backlog | undefined {
    return this.#app?.backlog()
  }

  /** Returns what delivery last reported about an endpoint. */
  lag(endpointId: string): EndpointLag | undefined {
    const heartbeat = this.control.heartbeats.at(-1)
    return heartbeat?.process === 'delivery' ? heartbeat.lag.find(({ endpoint_id }) => endpoint_id === endpointId) : undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop(AbortSignal.abort())
    await this.control[Symbol.asyncDispose]()
    await rm(this.directory, { recursive: true, force: true })
  }
}

export function anEndpointTo(
  destination: SnapshotEndpoint['destination'],
  change: Partial<SnapshotEndpoint> = {},
): SnapshotEndpoint {
  return anEndpoint({ destination, ...change })
}
