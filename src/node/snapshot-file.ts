import { errorMessage } from '#lib/error-message.ts'
import { type Files, type OpenFile, writeDurably } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { parseUpdates, printUpdate, type SnapshotUpdate } from './snapshot-sections.ts'

export type SnapshotFileOptions = { readonly path: string; readonly files: Files; readonly logger: Logger }

/** The file is not rewritten before its appended updates have this size. */
const appendedBytesMin = 1024 * 1024

/**
 * The stored copy of a snapshot, for a start without control: updates in the order and format of the responses.
 *
 * Law: the file is replaced atomically or appended to, so it always starts with complete updates. A process appends only to a file
 * that it wrote itself, so a torn update of a crashed process is never followed by another.
 */
export class SnapshotFile {
  readonly #options: SnapshotFileOptions
  #appending: { readonly file: OpenFile; base: number; bytes: number } | undefined

  constructor(options: SnapshotFileOptions) {
    this.#options = options
  }

  /** Returns the updates to apply in order; empty if the file is missing or unreadable. */
  async load(): Promise<readonly SnapshotUpdate[]> {
    const { files, path, logger } = this.#options
    const bytes = await files.read(path)
    if (bytes === undefined) return []
    try {
      return parseUpdates(bytes)
    } catch (error) {
      logger.error({ path, reason: errorMessage(error) }, 'stored snapshot unreadable; waiting for control')
      return []
    }
  }

  /** Stores an update, or rewrites the file with `all`. Never throws: a full disk must not delay a revocation. */
  async store(update: Uint8Array, all: () => SnapshotUpdate | undefined): Promise<void> {
    const { path, logger } = this.#options
    try {
      const appending = this.#appending
      if (appending !== undefined && appending.bytes - appending.base < Math.max(appending.base, appendedBytesMin)) {
        await appending.file.write([update], appending.bytes)
        await appending.file.sync()
        appending.bytes += update.byteLength
      } else await this.#rewrite(all())
    } catch (error) {
      await this.close()
      logger.error({ path, reason: errorMessage(error) }, 'snapshot write failed')
    }
  }

  async close(): Promise<void> {
    const appending = this.#appending
    this.#appending = undefined
    await appending?.file.close().catch(() => undefined)
  }

  async #rewrite(all: SnapshotUpdate | undefined): Promise<void> {
    if (all === undefined) return
    const { files, path } = this.#options
    await this.close()
    const bytes = printUpdate(all)
    await writeDurably(files, path, bytes)
    this.#appending = { file: await files.open(path, 'update'), base: bytes.byteLength, bytes: bytes.byteLength }
  }
}
