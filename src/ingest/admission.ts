import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Memory } from './http/intake.ts'
import { ingestLimits } from './limits.ts'

/** What admission asks of the WAL. */
interface Storage {
  bytesOnDisk(): number
  health(): { readonly healthy: boolean; readonly reasons: readonly string[] }
}

export type AdmissionOptions = {
  readonly storage: Storage
  /** Free space of the file system that the WAL is on. */
  readonly freeBytes: () => Promise<number>
  readonly maxInFlightBytes: number
  readonly diskBudgetBytes: number
  readonly diskReserveBytes: number
  readonly clock: Clock
  readonly logger: Logger
}

const retryInFlightSeconds = 1
const retryStorageSeconds = 5

/**
 * Decides whether there is room for more.
 *
 * Owns: bytes in flight, and the view of disk and WAL that it looks at every second. Does not own: what a request may hold.
 * Law: it refuses with 503 and recovers by itself once there is room; it never ends the process (law 9).
 */
export class Admission implements Service, Memory {
  readonly name = 'admission'
  readonly #options: AdmissionOptions
  #inFlightBytes = 0
  /** The last look. Between two looks, what the WAL has grown by is taken off the free space. */
  #freeBytes = 0
  #walBytesThen = 0
  #reasons: readonly string[] = ['the disk has not been looked at yet']
  #cancel = (): void => undefined
  #stopped = false

  constructor(options: AdmissionOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    await this.#look()
    this.#schedule()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel()
  }

  get inFlightBytes(): number {
    return this.#inFlightBytes
  }

  /** Why nothing more is taken in; empty while it is. A node that is merely busy is not unhealthy. */
  reasons(): readonly string[] {
    const full = this.#diskFull(0)
    return full === undefined ? this.#reasons : [full, ...this.#reasons]
  }

  /** Throws `unavailable` when disk or WAL can't take another request of so many bytes. */
  admit(bytes: number): void {
    const reason = this.#diskFull(bytes) ?? this.#reasons[0]
    if (reason !== undefined) throw unavailable(reason, retryStorageSeconds)
  }

  /** Why nothing more should be read from connections that are open; undefined while there is room. */
  noRoomBecause(): string | undefined {
    // A half, so that what was read already has the other.
    if (this.#inFlightBytes > this.#options.maxInFlightBytes / 2) return 'this node has as many bytes in memory as it may'
    return this.#diskFull(0) ?? this.#reasons[0]
  }

  /** For bytes that were read already. Whoever takes so stops reading once there is no room. */
  take(bytes: number): void {
    this.#inFlightBytes += bytes
  }

  reserve(bytes: number): void {
    if (this.#inFlightBytes + bytes > this.#options.maxInFlightBytes) {
      throw unavailable('this node has as many request bytes in memory as it may', retryInFlightSeconds)
    }
    this.#inFlightBytes += bytes
  }

  release(bytes: number): void {
    this.#inFlightBytes -= bytes
  }

  #diskFull(moreBytes: number): string | undefined {
    const { storage, diskBudgetBytes, diskReserveBytes } = this.#options
    const walBytes = storage.bytesOnDisk()
    if (walBytes + this.#inFlightBytes + moreBytes > diskBudgetBytes) {
      return `${walBytes} bytes wait on disk for delivery, with a budget of ${diskBudgetBytes}`
    }
    const freeBytes = this.#freeBytes - Math.max(0, walBytes - this.#walBytesThen)
    if (freeBytes < diskReserveBytes) return `${freeBytes} bytes are free on disk, with a reserve of ${diskReserveBytes}`
    return undefined
  }

  #schedule(): void {
    if (this.#stopped) return
    this.#cancel = this.#options.clock.setTimer(
      () => void this.#look().then(() => this.#schedule()),
      ingestLimits.admissionPollMs,
    )
  }

  async #look(): Promise<void> {
    const { storage, freeBytes, logger } = this.#options
    const before = this.reasons()
    const reasons: string[] = []
    try {
      this.#freeBytes = await freeBytes()
      this.#walBytesThen = storage.bytesOnDisk()
    } catch (error) {
      reasons.push(`the free space of the disk can't be read: ${errorMessage(error)}`)
    }
    const { healthy, reasons: walReasons } = storage.health()
    if (!healthy) reasons.push(...walReasons)
    this.#reasons = reasons
    const now = this.reasons()
    if (now.length > 0 && before.length === 0) logger.error({ reasons: now }, 'ingest refuses requests')
    if (now.length === 0 && before.length > 0) logger.info('ingest takes requests')
  }
}

function unavailable(reason: string, retryAfterSeconds: number): AppError {
  return new AppError('unavailable', `${reason}; try again in ${retryAfterSeconds} s`, { retryAfterSeconds })
}
