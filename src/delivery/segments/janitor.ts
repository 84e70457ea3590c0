import type { Files } from '#lib/files.ts'
import type { SegmentSource } from '#log/segment-source.ts'
import type { OutboxEntry } from '#node/outbox-files.ts'

/**
 * Removes delivered segments and temporary files.
 *
 * Law: a segment is removed only after its marker is in the bucket and its commit is durable in the store. Scratch files can be rebuilt,
 * so they are removed at every start.
 */
export class Janitor {
  readonly #files: Files
  readonly #segments: SegmentSource

  constructor({ files, segments }: { readonly files: Files; readonly segments: SegmentSource }) {
    this.#files = files
    this.#segments = segments
  }

  async removeDelivered({ endpoint_id, log, seq }: OutboxEntry): Promise<void> {
    await this.#segments.remove({ logName: endpoint_id, incarnation: log, seq })
  }

  async clearScratch(directory: string): Promise<void> {
    await this.#files.removeTree(directory)
    await this.#files.makeDirectory(directory)
  }
}
