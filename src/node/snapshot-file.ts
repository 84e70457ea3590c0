import { crc32 } from 'node:zlib'
import { errorMessage } from '#lib/error-message.ts'
import { type Files, type OpenFile, writeDurably } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { parseUpdates, printUpdate, type SnapshotUpdate } from './snapshot-sections.ts'

export type SnapshotFileOptions = { readonly path: string; readonly files: Files; readonly logger: Logger }

/** The file is not rewritten before its appended updates have this size. */
const appendedBytesMin = 1024 * 1024

/**
 * The stored copy of a snapshot, for a start without control: updates in the order and format of the responses, each followed by a line with
 * its checksum. Control sends only sections whose version changed, so a flipped bit in a bucket or a key would stay for long.
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

  /** Returns the updates to apply in order; empty if the file is missing, damaged or unreadable. */
  async load(): Promise<readonly SnapshotUpdate[]> {
    const { files, path, logger } = this.#options
    try {
      const bytes = await files.read(path)
      return bytes === undefined ? [] : parseUpdates(verify(bytes))
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
        const bytes = withChecksum(update)
        await appending.file.write([bytes], appending.bytes)
        await appending.file.sync()
        appending.bytes += bytes.byteLength
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
    const bytes = withChecksum(printUpdate(all))
    await writeDurably(files, path, bytes)
    this.#appending = { file: await files.open(path, 'update'), base: bytes.byteLength, bytes: bytes.byteLength }
  }
}

const checksumLine = /^{"crc32":"([0-9a-f]{8})"}$/

function withChecksum(update: Uint8Array): Buffer {
  return Buffer.concat([update, Buffer.from(`{"crc32":"${checksumOf(update)}"}\n`)])
}

/** Returns the updates without their checksums. A torn update at the end has none, and is left out. Throws if one does not match. */
function verify(bytes: Uint8Array): Uint8Array {
  const updates: Uint8Array[] = []
  let start = 0
  for (let at = 0, end = bytes.indexOf(0x0a); end >= 0; at = end + 1, end = bytes.indexOf(0x0a, at)) {
    const [, checksum] =
      checksumLine.exec(Buffer.from(bytes.buffer, bytes.byteOffset + at, Math.min(end - at, 64)).toString()) ?? []
    if (checksum === undefined) continue
    const update = bytes.subarray(start, at)
    if (checksumOf(update) !== checksum) throw new Error('it is damaged: its checksum does not match')
    updates.push(update)
    start = end + 1
  }
  // Files of earlier versions have no checksums.
  return updates.length === 0 ? bytes : Buffer.concat(updates)
}

function checksumOf(update: Uint8Array): string {
  return crc32(update).toString(16).padStart(8, '0')
}
