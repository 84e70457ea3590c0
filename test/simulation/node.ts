/** One node: its disk, and its two processes as long as they live. Production code runs on simulated ports. */

import { readConfig } from '#config/config.ts'
import { dataPaths } from '#config/data-paths.ts'
import { WorkerAccess } from '#delivery/convert/worker-access.ts'
import { composeDelivery } from '#delivery/plane.ts'
import { MarkerSeal } from '#delivery/publish/marker-seal.ts'
import type { KeyIndexes } from '#delivery/windows/thread.ts'
import { startAll } from '#lib/service.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { NodeFence } from '#node/node-fence.ts'
import type { Buckets } from './bucket.ts'
import type { SimulatedControl } from './control.ts'
import { type ConversionFault, SimulatedConversions } from './conversions.ts'
import type { Disk } from './disk.ts'
import { type Kernel, Life } from './kernel.ts'

export type NodeOptions = {
  readonly name: string
  readonly kernel: Kernel
  readonly disk: Disk
  readonly buckets: Buckets
  readonly control: SimulatedControl
  readonly conversionFault: () => ConversionFault | undefined
  /** How far the clock of the machine is off. */
  readonly aheadMs: () => number
}

const logger = createLogger('simulation', 'silent')
const paths = dataPaths('/data')
const config = { ...readConfig({ INLET_DATA_DIR: '/data', INLET_LOG_LEVEL: 'silent' }), paths }
/** No view has a window. */
const keyIndexes = {} as KeyIndexes

export class SimulatedNode {
  readonly #options: NodeOptions
  readonly #lives = new Map<'ingest' | 'delivery', Life>()
  #starts = 0
  /** Undefined until ingest has started. */
  log: LocalLogWriter | undefined

  constructor(options: NodeOptions) {
    this.#options = options
  }

  lives(process: 'ingest' | 'delivery'): boolean {
    return this.#lives.has(process)
  }

  async startIngest(logs: readonly string[], segmentBytes: number, maxAgeMs: number): Promise<void> {
    const { life, files, random } = this.#begin('ingest')
    await readOrCreateNodeId(paths, { files, random })
    const log = new LocalLogWriter({ directory: paths.wal, files, clock: life.clock, random, logger })
    await log.start()
    for (const logName of logs) log.configure(logName, { segmentBytes, segmentMaxAgeMs: maxAgeMs, seqAbove: -1 })
    this.log = log
  }

  async startDelivery(): Promise<void> {
    const { kernel, buckets, control, conversionFault } = this.#options
    const { life, files, random } = this.#begin('delivery')
    const client = control.clientFor(life)
    const nodeId = await readOrCreateNodeId(paths, { files, random })
    const clock = await CheckedClock.start({ machine: life.clock, logger }, client, nodeId)
    const plane = composeDelivery(config, {
      ...{ nodeId, adoption: undefined, control: client, files, clock, machine: life.clock, random, logger, keyIndexes },
      fence: await NodeFence.open({ path: paths.nodeFence, files, logger }),
      segments: new LocalSegmentSource({ directory: paths.wal, files, clock: life.clock }),
      stores: buckets.storesFor(life, files),
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
    await plane.prepare()
    await startAll(plane.services)
  }

  /** Ends a process at once, as a kill does. What the system has stays. */
  kill(process: 'ingest' | 'delivery', how = 'killed'): void {
    this.#lives.get(process)?.end(how)
    this.#lives.delete(process)
    if (process === 'ingest') this.log = undefined
  }

  losePower(): void {
    for (const process of ['ingest', 'delivery'] as const) this.kill(process, 'power lost')
    this.#options.disk.losePower()
  }

  #begin(process: 'ingest' | 'delivery') {
    const { name, kernel, disk, aheadMs } = this.#options
    this.#starts += 1
    const life = new Life(`${name}/${process}-${this.#starts}`, kernel, aheadMs)
    this.#lives.set(process, life)
    return { life, files: disk.filesFor(life), random: kernel.draw(life.name).random }
  }
}
