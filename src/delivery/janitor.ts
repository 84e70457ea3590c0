import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Files } from '#lib/files.ts'
import type { SegmentCommit } from '#model/commit.ts'
import { segmentName } from '#wal/segment-file.ts'

/**
 * Removes what is no longer needed.
 *
 * Law: a segment goes only once its commit is durable in the store, and its marker is in the bucket before that. What can be
 * made again (scratch) goes at every start.
 */
export class Janitor {
  readonly #files: Files
  readonly #walDirectory: string

  constructor({ files, walDirectory }: { readonly files: Files; readonly walDirectory: string }) {
    this.#files = files
    this.#walDirectory = walDirectory
  }

  async removeDelivered({ endpoint_id, log, seq }: SegmentCommit): Promise<void> {
    await this.#files.remove(
      join(this.#walDirectory, endpoint_id, segmentName({ logName: endpoint_id, incarnation: log, seq }, 'wal')),
    )
  }

  async clearScratch(directory: string): Promise<void> {
    await rm(directory, { recursive: true, force: true })
    await this.#files.makeDirectory(directory)
  }
}
