/** The local engine of the log on the disk of faulty-files.ts, under a clock that stands still. Tests append to the log `log`. */
import { Buffer } from 'node:buffer'
import type { Files } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter, type LocalLogWriterOptions } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import type { LogSettings } from '../../src/log/log-writer.ts'
import { type DiskOperation, type Fault, FaultyDisk } from './faulty-files.ts'
import { oneRecord } from './frames.ts'
import { ManualClock } from './manual-clock.ts'

export const never = new AbortController().signal
export const crashes = ['crash before', 'crash after', 'kill before', 'kill after'] as const
export const logSettings: LogSettings = { segmentBytes: 10_000, segmentMaxAgeMs: 60_000, seqAbove: -1 }

export type WalRigOptions = Partial<LocalLogWriterOptions> & {
  /** Draws the faults of the disk. */
  readonly seed?: number
  /** Logs that a start configures. */
  readonly logs?: readonly string[]
}

export class WalRig {
  readonly disk: FaultyDisk
  readonly clock = new ManualClock()
  readonly directory: string
  files: Files
  segments: LocalSegmentSource
  wal: LocalLogWriter
  #options: WalRigOptions

  private constructor(options: WalRigOptions) {
    this.#options = options
    this.disk = new FaultyDisk(seededRandom(options.seed ?? 7))
    this.directory = options.directory ?? '/data/wal'
    ;[this.files, this.segments] = this.mount()
    this.wal = this.#newWriter()
  }

  static async start(options: WalRigOptions = {}): Promise<WalRig> {
    const rig = new WalRig(options)
    await rig.restart()
    return rig
  }

  /** Shows the disk as a new process sees it. */
  mount(): readonly [Files, LocalSegmentSource] {
    this.files = this.#options.files ?? this.disk.mount()
    this.segments = new LocalSegmentSource({ directory: this.directory, files: this.files, clock: this.clock })
    return [this.files, this.segments]
  }

  /** Starts the writer of a new process. Options replace those before. */
  async restart(options: WalRigOptions = {}): Promise<void> {
    this.#options = { ...this.#options, ...options }
    this.mount()
    this.wal = this.#newWriter()
    await this.wal.start()
    for (const name of this.#options.logs ?? ['log']) this.wal.configure(name, logSettings)
  }

  #newWriter(): LocalLogWriter {
    const { directory, files, clock } = this
    return new LocalLogWriter({ ...system, logger: createLogger('test', 'silent'), ...this.#options, directory, files, clock })
  }

  /** Appends a frame whose name is in its envelope and fills its payload. Returns the seq. */
  async append(name = 'a', bytes = 100, logName = 'log'): Promise<number> {
    const frame = oneRecord({ payload: Buffer.alloc(bytes, name), envelope: name, at: this.clock.now() * 1_000 })
    return (await this.wal.append(logName, frame)).seq
  }

  /** Lets `ms` pass, and everything happen that is due. */
  async pass(ms: number): Promise<void> {
    this.clock.advance(ms)
    for (let turn = 0; turn < 60; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  }

  /** Lets the regular upkeep of the log run so many times. */
  async upkeep(times = 1): Promise<void> {
    for (let time = 0; time < times; time += 1) await this.pass(1_000)
  }

  /** Makes the operation with this index fail, and returns the list that operations are added to. */
  failAt(index: number, fault: Fault): readonly DiskOperation[] {
    const operations: DiskOperation[] = []
    this.disk.fault = (operation) => (operations.push(operation) === index + 1 ? fault : undefined)
    return operations
  }

  heal(): void {
    this.disk.fault = () => undefined
  }

  /** Returns the seq and state of each segment, whatever fails at the moment. */
  async states(logName = 'log'): Promise<readonly string[]> {
    const { fault } = this.disk
    this.heal()
    const listed = await this.segments.list()
    this.disk.fault = fault
    return listed.filter((segment) => segment.logName === logName).map(({ seq, state }) => `${seq} ${state}`)
  }

  /** Reads and removes what is sealed. Returns the seq of each frame by its name. */
  async deliver(): Promise<Record<string, number>> {
    const found: Record<string, number> = {}
    for (const segment of await this.segments.list()) {
      if (segment.state !== 'sealed') continue
      const reader = await this.segments.open(segment)
      for await (const frames of reader.frames(1_000))
        for (const { envelope } of frames) found[Buffer.from(envelope).toString()] = segment.seq
      await reader.close()
      await this.segments.remove(segment)
    }
    return found
  }

  /** Returns the path of the open segment. */
  openPath(): string {
    const path = this.disk.paths().find((each) => each.endsWith('.open'))
    if (path === undefined) throw new Error('no segment is open')
    return path
  }
}
