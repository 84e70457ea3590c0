/**
 * One open segment: accepts groups of frames and becomes a sealed file.
 *
 * Owns: the file, and how far it is durable. Does not own: when to seal (current-segment.ts), nor the recovery of a poisoned file (recover/recovery.ts).
 * Law: `append` resolves after fdatasync. If it fails, either the file was cut back to its last durable frame and stays open, or the
 * segment is poisoned and never written to or synced again.
 */
import { dirname } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import type { Durations } from '#lib/durations.ts'
import { errorCode, type Files, type OpenFile } from '#lib/files.ts'
import { isDiskFull } from '../../disk-error.ts'
import type { Sync } from '../../log-writer.ts'
import { encodeFooter, encodeHeader, FOOTER_BYTES, HEADER_BYTES, type SegmentHeader } from '../format/segment-file.ts'
import { SegmentTally } from '../format/segment-tally.ts'
import { salvageUnlinked } from '../recover/salvage.ts'
import type { FrameGroup } from './frame-group.ts'

export type SegmentWriterOptions = {
  readonly files: Files
  /** An empty file whose name is durable. */
  readonly file: OpenFile
  readonly header: SegmentHeader
  readonly clock: Clock
  /** How long each fdatasync took. */
  readonly syncs: Durations
}

/**
 * `poisoned`: the disk failed, and what follows the last durable frame is unknown. `unlinked`: the file lost its name, and its frames exist
 * only as long as it is open. `closed`: sealed or abandoned.
 */
export type SegmentWriterState = 'open' | 'poisoned' | 'unlinked' | 'closed'

/** The file of an open segment was removed or replaced. Its frames, with the last group, can be salvaged. */
export class UnlinkedError extends Error {
  override readonly name = 'UnlinkedError'
}

export class SegmentWriter {
  readonly header: SegmentHeader
  readonly #files: Files
  readonly #file: OpenFile
  readonly #clock: Clock
  readonly #syncs: Durations
  readonly #tally: SegmentTally
  #durableBytes = 0
  #lastChunks: readonly Uint8Array[] = []
  #lastSync: Sync | undefined
  #state: SegmentWriterState = 'open'

  constructor({ files, file, header, clock, syncs }: SegmentWriterOptions) {
    this.#files = files
    this.#file = file
    this.header = header
    this.#clock = clock
    this.#syncs = syncs
    this.#tally = new SegmentTally(this.header.salt)
  }

  get path(): string {
    return this.#file.path
  }

  get frames(): number {
    return this.#tally.frames
  }

  get records(): number {
    return this.#tally.records
  }

  /** Bytes that survive a crash. The header is written with the first group. */
  get durableBytes(): number {
    return this.#durableBytes
  }

  /** Returns what the last group has added to the file, once: a segment that waits for more must not keep it in memory. */
  takeLastChunks(): readonly Uint8Array[] {
    const chunks = this.#lastChunks
    this.#lastChunks = []
    return chunks
  }

  /** The fdatasync of the last group. */
  get lastSync(): Sync | undefined {
    return this.#lastSync
  }

  get state(): SegmentWriterState {
    return this.#state
  }

  /** Either all frames become durable, or it throws and none may be acknowledged. */
  async append(group: FrameGroup): Promise<void> {
    const chunks = group.complete(this.header.salt)
    const startsFile = this.#durableBytes === 0
    if (startsFile) chunks.unshift(encodeHeader(this.header))
    await this.#write(chunks)
    this.#durableBytes += (startsFile ? HEADER_BYTES : 0) + group.bytes
    this.#lastChunks = chunks
    group.tally(this.#tally)
    if (!this.#file.isLinked()) this.#unlinked()
  }

  /** Writes the footer, renames the file and syncs its directory. Returns the size of the sealed file. The segment must have frames. */
  async seal(path: string, sealedAtMicros: number): Promise<number> {
    await this.#write([this.#footer(sealedAtMicros)])
    // If that cannot be found out, the rename shows it.
    if (!(await this.#file.isNamed().catch(() => true))) this.#unlinked()
    // The file is complete now. If a later step fails, a recovery finds the footer and only renames the file.
    try {
      await this.#files.rename(this.#file.path, path)
    } catch (error) {
      if (errorCode(error) === 'ENOENT') this.#unlinked()
      this.#durableBytes += FOOTER_BYTES
      await this.close()
      throw error
    }
    this.#durableBytes += FOOTER_BYTES
    await this.close()
    await this.#files.syncDirectory(dirname(path))
    return this.#durableBytes
  }

  /** Writes an unlinked segment again, as a sealed file at `path`. Returns its size. Can be repeated after a failure. */
  async salvage(path: string, sealedAtMicros: number): Promise<number> {
    const footer = this.#footer(sealedAtMicros)
    const unlinked = { file: this.#file, identity: this.header, framesEnd: this.#durableBytes, footer }
    const bytes = await salvageUnlinked(this.#files, unlinked, path)
    this.#durableBytes = bytes
    await this.close().catch(() => undefined)
    return bytes
  }

  /** Closes a file that is not sealed. */
  async close(): Promise<void> {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    await this.#file.close()
  }

  async #write(chunks: readonly Uint8Array[]): Promise<void> {
    try {
      await this.#file.write(chunks, this.#durableBytes)
    } catch (error) {
      if (isDiskFull(error)) await this.#cutBack()
      else this.#fail()
      throw error
    }
    const startedAtMs = this.#clock.monotonic()
    try {
      await this.#file.sync()
      const endedAtMs = this.#clock.monotonic()
      this.#syncs.observe(endedAtMs - startedAtMs)
      this.#lastSync = { startedAtMs, endedAtMs }
    } catch (error) {
      this.#fail()
      throw error
    }
  }

  #footer(sealedAtMicros: number): Uint8Array {
    return encodeFooter(this.#tally.footer(this.#durableBytes, sealedAtMicros), this.header.salt)
  }

  #unlinked(): never {
    this.#state = 'unlinked'
    throw new UnlinkedError(`${this.#file.path} was removed while it was being written`)
  }

  #fail(): void {
    // Without a name there is nothing to recover from later. The durable frames can still be read now.
    this.#state = this.#file.isLinked() || this.frames === 0 ? 'poisoned' : 'unlinked'
  }

  async #cutBack(): Promise<void> {
    try {
      await this.#file.truncate(this.#durableBytes)
    } catch {
      this.#fail()
    }
  }
}
