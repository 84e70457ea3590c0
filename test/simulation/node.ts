/** One node: its disk, and its two processes as long as they live. Production code runs on simulated ports. */
import { Registry } from 'prom-client'
import { progressOf } from '#cli/serve/adopt.ts'
import { restoreCopies } from '#cli/serve/restore-copies.ts'
import { readConfig } from '#config/config.ts'
import { dataPaths } from '#config/data-paths.ts'
import { Copies } from '#copies/copies.ts'
import { copyFolder } from '#copies/copy-names.ts'
import { type Restored, removalOf } from '#copies/restore.ts'
import { WorkerAccess } from '#delivery/convert/worker-access.ts'
import { stopWhenFenced } from '#delivery/fenced-stop.ts'
import { composeDelivery } from '#delivery/plane.ts'
import { MarkerSeal } from '#delivery/publish/marker-seal.ts'
import type { Backlog } from '#delivery/segments/backlog.ts'
import type { Gate } from '#ingest/gate/gate.ts'
import type { NodeRoom } from '#ingest/gate/node-room.ts'
import { composeIngest, type IngestConfig } from '#ingest/plane.ts'
import { sleep } from '#lib/clock.ts'
import { startAll, stopAll } from '#lib/service.ts'
import type { System } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import type { Register, TakeOver } from '#model/node-protocol.ts'
import { beginAdoption, endAdoption, readAdoption } from '#node/adoption.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { NodeCredential } from '#node/credential.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { NodeFence } from '#node/node-fence.ts'
import { Registration } from '#node/registration.ts'
import type { Buckets } from './bucket.ts'
import { rescuerId, type SimulatedControl } from './control.ts'
import { type ConversionFault, SimulatedConversions } from './conversions.ts'
import { type Disk, isDiskFault } from './disk.ts'
import { type Kernel, Life } from './kernel.ts'
import { simulatedIndexes } from './key-indexes.ts'
import { Listener } from './listener.ts'

/** Resources of a node, and how many idempotency keys it remembers. */
export type NodeBounds = Pick<IngestConfig, 'diskBudgetBytes' | 'maxInFlightBytes' | 'idempotencyKeysMax'>

/** A process that takes data. */
export type Ingest = { readonly life: Life; readonly gate: Gate; readonly nodeRoom: NodeRoom; readonly listener: Listener }

export type NodeOptions = {
  readonly name: string
  readonly kernel: Kernel
  readonly disk: Disk
  readonly buckets: Buckets
  /** Undefined: it has none. */
  readonly copyStore: Buckets | undefined
  readonly control: SimulatedControl
  readonly conversionFault: () => ConversionFault | undefined
  readonly bounds: NodeBounds
  /** How long a start waits for the recovery of its log. */
  readonly recoveryWaitMs: number
  /** How far the clock of the machine is off. */
  readonly aheadMs: () => number
  /** Whether it delivers a copy of the disk of another machine, and takes no data. */
  readonly adopts: boolean
  /** The lost node whose log it restores from copies first. Undefined: its disk has a log. */
  readonly lostId: string | undefined
}

const logger = createLogger('simulation', 'silent')
const paths = dataPaths('/data')
const config = { ...readConfig({ INLET_DATA_DIR: '/data', INLET_LOG_LEVEL: 'silent' }), paths }
/** Each machine tells control this. */
const description: Register = { region: 'loc', ipv4: [], ipv6: [], ingest_address: '127.0.0.1:1' }
/** How often the node that takes over asks, and for how long. */
const askMs = 10_000
const chosenMsMax = 120_000

type Begun = Pick<System, 'files' | 'random'> & { readonly life: Life }

export class SimulatedNode {
  readonly #options: NodeOptions
  readonly #lives = new Map<'ingest' | 'delivery', Life>()
  /** Stops a process that has started, until a deadline. */
  readonly #stops = new Map<'ingest' | 'delivery', (deadline: AbortSignal) => Promise<void>>()
  #starts = 0
  #hasTakenOver = false
  #isLost = false
  #backlog: () => Backlog | undefined = () => undefined
  #ingest: Ingest | undefined

  constructor(options: NodeOptions) {
    this.#options = options
  }

  get name(): string {
    return this.#options.name
  }

  /** Undefined while it takes no requests, and for a machine that adopts. */
  get ingest(): Ingest | undefined {
    return this.#ingest?.listener.isOpen === true ? this.#ingest : undefined
  }

  /** Why data that it holds is not delivered. */
  get reasons(): readonly string[] {
    const { lags = [], problem = null } = (this.#lives.has('delivery') && this.#backlog()) || {}
    return [
      ...lags.map(({ endpoint_id, blocked_by }) => `${this.name}: ${endpoint_id} ${blocked_by}`),
      ...(problem === null ? [] : [problem]),
    ]
  }

  get disk(): Disk {
    return this.#options.disk
  }

  /** Whether the process runs, or must not run yet. */
  lives(process: 'ingest' | 'delivery'): boolean {
    if (this.#isLost) return true
    return this.#lives.has(process) || (process === 'delivery' && this.#options.adopts && !this.#hasTakenOver)
  }

  /** Whether its log is here, from when control gave it the place of the node. */
  get hasTakenOver(): boolean {
    return this.#hasTakenOver
  }

  /** Whether machine and disk are gone. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** The machine is gone, with its disk. */
  lose(): void {
    for (const process of ['ingest', 'delivery'] as const) this.kill(process, 'lost')
    this.#isLost = true
  }

  async startIngest(logs: readonly string[]): Promise<void> {
    const begun = this.#begin('ingest')
    const restored = await this.#restore(begun)
    const nodeId = await readOrCreateNodeId(paths, begun)
    this.#options.disk.rot.areIdsKept = true
    if (this.#options.adopts) await this.#adopt(logs, nodeId, begun)
    else await this.#serve(nodeId, begun)
    if (restored !== undefined) void this.#removeCopies(begun, nodeId, restored)
  }

  /** A person repeats the command, if it fails. */
  async #restore({ life, files, random }: Begun): Promise<Restored | undefined> {
    const { lostId, copyStore, control, name } = this.#options
    if (lostId === undefined || copyStore === undefined) return undefined
    const place = { store: copyStore.storeFor(life, files), folder: copyFolder('', lostId) }
    const own = {
      control: { takeOver: (lost: TakeOver) => control.giveLost(life, name, lost) },
      asLost: async () => control.clientFor(life, name, lostId),
    }
    const options = { by: rescuerId, nodeId: lostId, ...own, place, paths, files, random, logger, clock: life.clock }
    const isByItself = await this.#isGiven(life, lostId)
    if (isByItself) void this.#renew(life, lostId)
    for (;;)
      try {
        return await restoreCopies({ ...options, isByItself, stopping: life.ended })
      } catch (error) {
        if (isDiskFault(error)) throw error
        await sleep(life.clock, 1_000)
      }
  }

  /** As take-overs.ts of src/cli/serve does. A person steps in after a while: control gives nobody away who was shut down. */
  async #isGiven(life: Life, lostId: string): Promise<boolean> {
    const { control, name } = this.#options
    if (!control.choosesLost || this.#hasTakenOver) return false
    for (const endMs = life.clock.monotonic() + chosenMsMax; life.clock.monotonic() < endMs; ) {
      const given = await control.nextLost(life, name, []).catch((): readonly string[] => [])
      if (given.includes(lostId)) return true
      await sleep(life.clock, askMs)
    }
    return false
  }

  async #renew(life: Life, lostId: string): Promise<void> {
    const { control, name } = this.#options
    for (;;) {
      await control.nextLost(life, name, [lostId]).catch(() => undefined)
      await sleep(life.clock, askMs)
    }
  }

  /** As `startAdoption` of src/cli/serve does once all is delivered. */
  async #removeCopies({ life, files }: Begun, nodeId: string, restored: Restored): Promise<void> {
    const { copyStore, control, name } = this.#options
    if (copyStore === undefined) return
    const remove = removalOf({ store: copyStore.storeFor(life, files), folder: copyFolder('', nodeId) }, restored)
    for (;;) {
      await sleep(life.clock, 1_000)
      const backlog = this.#lives.has('delivery') ? this.#backlog() : undefined
      if (backlog === undefined || !progressOf(backlog).isDone) continue
      const isRemoved = await remove(life.ended).then(
        () => true,
        () => false,
      )
      if (isRemoved) return await control.endTakeOver(life, name, nodeId).catch(() => undefined)
    }
  }

  async #adopt(logs: readonly string[], nodeId: string, { life, files, random }: Begun): Promise<void> {
    await this.#takeOver(life, nodeId, { files, random })
    const log = new LocalLogWriter({ directory: paths.wal, files, clock: life.clock, random, logger })
    await log.start()
    this.#stops.set('ingest', (deadline) => log.stop(deadline))
    this.#hasTakenOver = true
    for (const logName of logs) void log.end(logName, 'adopted')
  }

  /** As app.ts of src/ingest does, but nothing listens: clients come through the gate. */
  async #serve(nodeId: string, { life, files, random }: Begun): Promise<void> {
    const { name, control, bounds, recoveryWaitMs, copyStore } = this.#options
    await endAdoption(files, paths.nodeAdoption)
    const client = control.clientFor(life, name, nodeId)
    const credential = await NodeCredential.open(nodeId, paths.nodeCredential, { files, random })
    const clock = await CheckedClock.start({ machine: life.clock, logger }, client, nodeId)
    const { services, http, mqtt, gate, nodeRoom, departure } = composeIngest(
      { ...config, ...bounds },
      {
        ...{ nodeId, control: client, files, clock, machine: life.clock, random, logger },
        registration: new Registration({ client, credential, joinSecret: null, node: description, logger }),
        fence: await NodeFence.open({ path: paths.nodeFence, files, logger }),
        openCopies:
          copyStore &&
          ((hooks) =>
            new Copies({
              ...{ nodeId, windowMs: config.copyWindowMs, files, clock, random, logger, ...hooks },
              store: copyStore.storeFor(life, files),
              folder: copyFolder('', nodeId),
              segments: new LocalSegmentSource({ directory: paths.wal, files, clock }),
            })),
        openLog: (hooks) =>
          new LocalLogWriter({ directory: paths.wal, files, clock, random, logger, limits: { recoveryWaitMs }, ...hooks }),
        startThread: () => {
          throw new Error('nobody exports logs')
        },
        addresses: { http: { host: '127.0.0.1', port: 0 }, mqtt: null },
        ownBaseUrl: 'http://control.test',
        registry: new Registry(),
        ...{ certificate: undefined, handed: undefined, supervisorPid: undefined, tracer: undefined, traces: undefined },
      },
    )
    const listener = new Listener()
    this.#ingest = { life, gate, nodeRoom, listener }
    const simulated = services.flatMap((service) => (service === http ? [listener] : service === mqtt ? [] : [service]))
    await startAll(simulated)
    this.#stops.set('ingest', async (deadline) => {
      await departure.leave()
      await stopAll(simulated, deadline)
    })
  }

  /** As `takeOver` of src/ingest/adopted does: nothing of the log is touched before control knows. */
  async #takeOver(life: Life, nodeId: string, { files, random }: Pick<System, 'files' | 'random'>): Promise<void> {
    const { control, name } = this.#options
    const isDone = () =>
      control.takeOver(life, name, { nodeId, from: 'node' }).then(
        () => true,
        () => false,
      )
    while (!(await isDone())) await sleep(life.clock, 500)
    await beginAdoption({ files, random }, paths.nodeAdoption)
  }

  async startDelivery(): Promise<void> {
    const { name, kernel, buckets, control, conversionFault } = this.#options
    const { life, files, random } = this.#begin('delivery')
    const nodeId = await readOrCreateNodeId(paths, { files, random })
    this.#options.disk.rot.areIdsKept = true
    const client = control.clientFor(life, name, nodeId)
    const clock = await CheckedClock.start({ machine: life.clock, logger }, client, nodeId)
    const fence = await NodeFence.open({ path: paths.nodeFence, files, logger })
    const plane = composeDelivery(config, {
      ...{ nodeId, control: client, fence, files, clock, machine: life.clock, random, logger },
      keyIndexes: simulatedIndexes(files),
      adoption: await readAdoption(files, paths.nodeAdoption),
      segments: new LocalSegmentSource({ directory: paths.wal, files, clock: life.clock }),
      stores: buckets.storesFor(life, files),
      delay: { longestMs: 0, percentileMs: () => 0 },
      seal: await MarkerSeal.open({ files, random }, paths.markerKey),
      conversionPool: new SimulatedConversions(
        life,
        files,
        { draw: kernel.draw(`${life.name} conversions`), meanMs: 20 },
        conversionFault,
      ),
      access: new WorkerAccess({ directory: paths.node, user: undefined }),
      ...{ tracer: undefined, traces: undefined },
    })
    this.#backlog = () => plane.backlog()
    await plane.prepare()
    await startAll(plane.services)
    const stop = stopWhenFenced({ services: plane.services, fence, logger })
    this.#stops.set('delivery', (deadline) => {
      fence.stopping()
      return stop(deadline)
    })
  }

  /** Ends a process that has started, as a SIGTERM does. Resolves with whether it had its place and the time that it needed, and never if it is killed. */
  async stop(process: 'ingest' | 'delivery'): Promise<boolean> {
    const [life, stop] = [this.#lives.get(process), this.#stops.get(process)]
    if (life === undefined || stop === undefined || life.standsStill) return false
    this.#stops.delete(process)
    life.kernel.note(`${life.name}: stopping`)
    const deadline = life.clock.timeout(config.shutdownSeconds * 1_000)
    try {
      await stop(deadline)
    } finally {
      if (life.isAlive) this.kill(process, 'stopped')
    }
    return !deadline.aborted && !this.#options.control.refuses(this.name)
  }

  /** Ends a process at once, as a kill does. What the system has stays. */
  kill(process: 'ingest' | 'delivery', how = 'killed'): void {
    this.#lives.get(process)?.end(how)
    this.#lives.delete(process)
    this.#stops.delete(process)
    if (process === 'ingest') this.#ingest = undefined
  }

  /** The processes stand still for so long, as on a machine that is suspended. */
  freeze(processes: readonly ('ingest' | 'delivery')[], forMs: number): void {
    for (const process of processes) {
      const life = this.#lives.get(process)
      if (life === undefined || life.standsStill) continue
      life.freeze()
      life.kernel.after(forMs, `${life.name}: goes on`, () => life.thaw())
    }
  }

  losePower(): void {
    for (const process of ['ingest', 'delivery'] as const) this.kill(process, 'power lost')
    this.#options.disk.losePower()
  }

  #begin(process: 'ingest' | 'delivery'): Begun {
    const { name, kernel, disk, aheadMs } = this.#options
    this.#starts += 1
    const life = new Life(`${name}/${process}-${this.#starts}`, kernel, aheadMs)
    this.#lives.set(process, life)
    return { life, files: disk.filesFor(life), random: kernel.draw(life.name).random }
  }
}
