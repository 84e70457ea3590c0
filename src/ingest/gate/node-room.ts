import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { DiskSpace } from '#lib/files.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { LogUsage, LogWriter } from '#log/log-writer.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { EndpointRoom, type NodeState, type Resource } from './endpoint-room.ts'
import { type Bound, FairShares, memberOf } from './fair-shares.ts'
import { gateLimits } from './limits.ts'

export type NodeRoomOptions = {
  readonly log: Pick<LogWriter, 'health'> & { readonly usage: Pick<LogUsage, 'bytes'> }
  /** Free space of the file system that holds the WAL. */
  readonly space: () => Promise<DiskSpace>
  readonly maxInFlightBytes: number
  /** Shares of the disk budget, by log. Bytes in the WAL are counted by the caller, bytes in flight here. */
  readonly disk: FairShares
  readonly diskReserveBytes: number
  readonly clock: Clock
  readonly logger: Logger
}

/** The room of an endpoint, as the gate and its sessions use it. */
export type Room = Pick<EndpointRoom, 'requireRoom' | 'reserve' | 'forceReserve' | 'release' | 'tryHold' | 'backpressureReason'>

/** The rooms of all endpoints, as the gate uses them. */
export type Rooms = Pick<NodeRoom, 'reasons'> & { room(endpointId: string): Room }

/**
 * Decides whether this node has room for more data, in total and for each endpoint.
 *
 * Owns: bytes in flight, the rooms of endpoints, and the state of disk and WAL, checked every second. Does not own: bounds on a single
 * request.
 * Law: without room it rejects. Once there is room, it accepts again by itself. It never ends the process (law 9).
 */
export class NodeRoom implements Service, NodeState {
  readonly name = 'node room'
  readonly #options: NodeRoomOptions
  readonly #checks: Periodic
  readonly #memory: FairShares
  readonly #disk: FairShares
  /** Shares of the bytes that connections hold unread. */
  readonly #unread: FairShares
  readonly #rooms = new Map<string, EndpointRoom>()
  #configured: readonly SnapshotEndpoint[] | undefined
  /** How often a share or the node had no room, as `<resource>_<bound>`. */
  readonly refusals = new Map<string, number>()
  /** As of the last check. Between two checks, the growth of the WAL is subtracted from the free space. */
  #space: DiskSpace = { free_bytes: 0, total_bytes: 0 }
  #checkedLogBytes = 0
  #reasons: readonly string[] = ['the disk has not been checked yet']
  /** Whether the last line in the log says that data is rejected. */
  #isRejectionLogged = false

  constructor(options: NodeRoomOptions) {
    this.#options = options
    this.#memory = new FairShares(options.maxInFlightBytes)
    this.#disk = options.disk
    this.#unread = new FairShares(options.maxInFlightBytes)
    this.#checks = new Periodic({
      name: 'disk check',
      intervalMs: gateLimits.roomPollMs,
      run: () => this.#check(),
      failure: 'disk check failed',
      clock: options.clock,
      logger: options.logger,
    })
  }

  async start(): Promise<void> {
    await this.#check()
    await this.#checks.start()
  }

  stop(): Promise<void> {
    return this.#checks.stop()
  }

  get inFlightBytes(): number {
    return this.#memory.used
  }

  get memory(): FairShares {
    return this.#memory
  }

  /** Divides memory and disk among these endpoints. */
  configure(endpoints: readonly SnapshotEndpoint[]): void {
    if (endpoints === this.#configured) return
    this.#configured = endpoints
    this.#divide(endpoints)
    const known = new Set(endpoints.map(({ id }) => id))
    for (const id of this.#rooms.keys()) if (!known.has(id)) this.#rooms.delete(id)
  }

  #divide(endpoints: readonly SnapshotEndpoint[]): void {
    const members = endpoints.map(memberOf)
    this.#memory.configure(members)
    this.#disk.configure(members)
    this.#unread.configure(members)
  }

  room(endpointId: string): EndpointRoom {
    let room = this.#rooms.get(endpointId)
    if (room === undefined) {
      const memory = this.#memory.share(endpointId)
      const disk = this.#disk.share(endpointId)
      const unread = this.#unread.share(endpointId)
      room = new EndpointRoom({ memory, disk, unread, node: this })
      this.#rooms.set(endpointId, room)
    }
    return room
  }

  /** Returns the reasons for rejecting all data; empty while data is accepted. A node that is merely busy is healthy. */
  reasons(): readonly string[] {
    const full = this.#diskFull()
    return full === undefined ? this.#reasons : [full, ...this.#reasons]
  }

  refusalReason(): string | undefined {
    return this.#diskFull() ?? this.#reasons[0]
  }

  countRefusal(resource: Resource, bound: Bound): void {
    const name = `${resource}_${bound}`
    this.refusals.set(name, (this.refusals.get(name) ?? 0) + 1)
  }

  /** Whether data is rejected for want of room on the disk. */
  isDiskFull(): boolean {
    return this.#diskFull() !== undefined || this.#options.log.health().reasons.some((reason) => reason.startsWith('disk_full'))
  }

  /** Returns the endpoints whose data is refused because they use up their share of the disk, or their account does. */
  fullEndpoints(): readonly { readonly endpoint_id: string; readonly reason: string }[] {
    const full: { endpoint_id: string; reason: string }[] = []
    for (const [endpoint_id, room] of this.#rooms) {
      const reason = room.diskShareReason()
      if (reason !== undefined) full.push({ endpoint_id, reason: `new data is refused: ${reason}` })
    }
    return full
  }

  /** Tells nothing of how much there is: owners of endpoints and load balancers read it. */
  #diskFull(): string | undefined {
    if (this.#disk.used > this.#disk.total) return 'the disk budget of this node is used up'
    return this.#freeNow() < this.#options.diskReserveBytes ? 'the disk of this node is full up to its reserve' : undefined
  }

  /** As of the last check; undefined before the first. */
  get space(): DiskSpace | undefined {
    return this.#space.total_bytes === 0 ? undefined : this.#space
  }

  #freeNow(): number {
    return this.#space.free_bytes - Math.max(0, this.#options.log.usage.bytes - this.#checkedLogBytes)
  }

  async #check(): Promise<void> {
    const { log, space, logger } = this.#options
    // Deleted endpoints use less by now: their accounts have more of their guarantee again.
    if ([this.#memory, this.#disk, this.#unread].some((shares) => shares.isOutdated)) this.#divide(this.#configured ?? [])
    const reasons: string[] = []
    try {
      this.#space = await space()
      this.#checkedLogBytes = log.usage.bytes
    } catch (error) {
      reasons.push(`the free disk space cannot be read: ${errorMessage(error)}`)
    }
    const { healthy, reasons: logReasons } = log.health()
    if (!healthy) reasons.push(...logReasons)
    this.#reasons = reasons
    const now = this.reasons()
    const isRejecting = now.length > 0
    if (isRejecting === this.#isRejectionLogged) return
    this.#isRejectionLogged = isRejecting
    const bytes = { walBytes: log.usage.bytes, budgetBytes: this.#disk.total, freeBytes: this.#space.free_bytes }
    if (isRejecting) logger.error({ reasons: now, ...bytes }, 'ingest stopped accepting data')
    else logger.notice('ingest accepting data')
  }
}
