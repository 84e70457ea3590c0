/** Writes pieces of segments to the directory of a log that nothing else uses. Pieces may come again, with the same bytes. */
import { dirname, join } from 'node:path'
import type { Files, OpenFile } from '#lib/files.ts'
import { type PieceSink, pieceBytes, type SegmentPiece } from '../segment-piece.ts'
import type { SegmentRef } from '../segment-source.ts'
import { isLogName, parseSegmentName, segmentName } from './format/segment-file.ts'

export class PieceWriter implements PieceSink {
  readonly #files: Files
  readonly #directory: string
  /** The file that was written to last. */
  #open: OpenFile | undefined

  constructor(files: Files, directory: string) {
    this.#files = files
    this.#directory = directory
  }

  async write(piece: SegmentPiece): Promise<number> {
    const path = this.#pathOf(piece)
    if (this.#open?.path !== path) {
      await this.close()
      await this.#files.makeDirectory(dirname(path))
      const isThere = (await this.#files.bytes(path)) !== undefined
      this.#open = await this.#files.open(path, isThere ? 'update' : 'create')
    }
    await this.#open.write(piece.chunks, piece.at)
    return pieceBytes(piece)
  }

  async remove(segment: SegmentRef): Promise<void> {
    const path = this.#pathOf(segment)
    await this.close()
    await this.#files.remove(path)
    await this.#files.syncDirectory(dirname(path))
  }

  async close(): Promise<void> {
    const open = this.#open
    this.#open = undefined
    if (open === undefined) return
    await open.sync()
    await open.close()
    await this.#files.syncDirectory(dirname(open.path))
  }

  #pathOf(segment: SegmentRef): string {
    const name = segmentName(segment, 'open')
    // They come from a store, and become the names of files.
    if (!isLogName(segment.logName) || parseSegmentName(name) === undefined)
      throw new Error(`a piece names no segment: ${JSON.stringify(`${segment.logName}/${name}`)}`)
    return join(this.#directory, segment.logName, name)
  }
}
