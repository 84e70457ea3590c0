import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { ingestLimits } from './limits.ts'
import { tryAgain } from './rejection.ts'

/** The state of the WAL that admission depends on. */
interface WalStatus {
  bytesOnDisk(): number
  health(): { readonly healthy: boolean; readonly reasons: readonly string[] }
}

export type AdmissionOptions = {
  readonly wal: WalStatus
  /** Free space of the file system that holds the WAL. */
  readonly freeBytes: () => Promise<number>
  readonly maxInFlightBytes: number
  readonly diskBudgetBytes: number
  readonly diskReserveBytes: number
  readonly clock: Clock
  readonly logger: Logger
}

/** The part of admission that the gate and the protocols use. */
export type Capacity = Pick<Admission, 'admit' | 'reserve' | 'forceReserve' | 'release' | 'backpressureReason' | 'reasons'>

/**
 * Decides whether this node has room for more data.
 *
 * Owns: bytes in flight, and the state of disk and WAL, checked every second. Does not own: bounds on a single request.
 * Law: without room it rejects. Once there is room, it accepts again by itself. It never ends the process (law 9).
 */
export class Admission implements Service {
  readonly name = 'admission'
  readonly #options: AdmissionOptions
  readonly #checks: Periodic
  #inFlightBytes = 0
  /** As of the last check. Between two checks, the growth of the WAL is subtracted from the free space. */
  #freeBytes = 0
  #checkedWalBytes = 0
  #reasons: readonly string[] = ['the disk has not been checked yet']
  /** Whether the last line in the log says that data is rejected. */
  #isRejectionLogged = false

  constructor(options: AdmissionOptions) {
    this.#options = options
    this.#checks = new Periodic({
      name: 'disk check',
      intervalMs: ingestLimits.admissionPollMs,
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
    return this.#inFlightBytes
  }

  /** Returns the reasons for rejecting all data; empty while data is accepted. A node that is merely busy is healthy. */
  reasons(): readonly string[] {
    const full = this.#diskFull(0)
    return full === undefined ? this.#reasons : [full, ...this.#reasons]
  }

  /** Throws a Rejection if disk or WAL has no room for `bytes` more. */
  admit(bytes: number): void {
    const reason = this.#diskFull(bytes) ?? this.#reasons[0]
    if (reason !== undefined) throw tryAgain('no_room', reason, ingestLimits.retryDiskSeconds)
  }

  /** Returns why open connections must not be read now; undefined while there is room. */
  backpressureReason(): string | undefined {
    // At half of the bound, so that the other half is left for data that was already read.
    if (this.#inFlightBytes > this.#options.maxInFlightBytes / 2) return 'this node has too many request bytes in memory'
    return this.#diskFull(0) ?? this.#reasons[0]
  }

  /** Reserves memory for bytes that were already read, even above the bound. Callers stop reading while there is a `backpressureReason`. */
  forceReserve(bytes: number): void {
    this.#inFlightBytes += bytes
  }

  /** Throws a Rejection, and reserves nothing, if memory has no room for `bytes` more. */
  reserve(bytes: number): void {
    if (this.#inFlightBytes + bytes > this.#options.maxInFlightBytes) {
      throw tryAgain('no_room', 'this node has too many request bytes in memory', ingestLimits.retryMemorySeconds)
    }
    this.#inFlightBytes += bytes
  }

  release(bytes: number): void {
    this.#inFlightBytes -= bytes
  }

  /** Whether data is rejected for want of room on the disk. */
  isDiskFull(): boolean {
    return this.#diskFull(0) !== undefined || this.#options.wal.health().reasons.some((reason) => reason.startsWith('disk_full'))
  }

  #diskFull(moreBytes: number): string | undefined {
    const { wal, diskBudgetBytes, diskReserveBytes } = this.#options
    const walBytes = wal.bytesOnDisk()
    if (walBytes + this.#inFlightBytes + moreBytes > diskBudgetBytes) {
      return `${walBytes} bytes wait on disk for delivery; the budget is ${diskBudgetBytes}`
    }
    const freeBytes = this.#freeBytes - Math.max(0, walBytes - this.#checkedWalBytes)
    if (freeBytes < diskReserveBytes) return `${freeBytes} bytes are free on disk; the reserve is ${diskReserveBytes}`
    return undefined
  }

  async #check(): Promise<void> {
    const { wal, freeBytes, logger } = this.#options
    const reasons: string[] = []
    try {
      this.#freeBytes = await freeBytes()
      this.#checkedWalBytes = wal.bytesOnDisk()
    } catch (error) {
      reasons.push(`the free disk space cannot be read: ${errorMessage(error)}`)
    }
    const { healthy, reasons: walReasons } = wal.health()
    if (!healthy) reasons.push(...walReasons)
    this.#reasons = reasons
    const now = this.reasons()
    const isRejecting = now.length > 0
    if (isRejecting === this.#isRejectionLogged) return
    this.#isRejectionLogged = isRejecting
    if (isRejecting) logger.error({ reasons: now }, 'ingest stopped accepting data')
    else logger.notice('ingest accepting data')
  }
}
