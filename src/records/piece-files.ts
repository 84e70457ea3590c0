/**
 * Writes records that do not fit in memory together: a file for each piece that fits, which are then merged.
 *
 * Owns: the files of the pieces. Does not own: what is written (record-table.ts), the size of pieces (pieces.ts).
 * Law: a piece is written by the statement that shows that it fits, so nothing has to fit a second time. Only finished values are copied
 * once more, which needs at most a third of the memory where that is short.
 */
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { cutToFit, type Piece } from './pieces.ts'

export type PieceWriter<T> = {
  readonly write: (piece: Piece, file: string) => Promise<T>
  /** Called for a row that does not fit by itself. Without it, such a row fails the work. */
  readonly writeTooComplex?: (row: Piece, file: string) => Promise<T>
  /** Makes the file at the path from those of the pieces, which are in the order of the records. */
  readonly merge: (files: readonly string[], results: readonly T[]) => Promise<unknown>
}

/** Returns the results of the pieces, in the order of the records. */
export async function writePieces<T>(
  pieces: readonly Piece[],
  path: string,
  { write, writeTooComplex, merge }: PieceWriter<T>,
): Promise<readonly T[]> {
  const directory = `${path}.pieces`
  await mkdir(directory)
  try {
    const files: string[] = []
    const results: T[] = []
    const next = async (work: (file: string) => Promise<T>): Promise<void> => {
      const file = join(directory, String(files.length))
      results.push(await work(file))
      files.push(file)
    }
    await cutToFit(
      pieces,
      (piece) => next((file) => write(piece, file)),
      writeTooComplex && ((row) => next((file) => writeTooComplex(row, file))),
    )
    await merge(files, results)
    return results
  } finally {
    await rm(directory, { recursive: true })
  }
}

/** Writes the bytes of the files one after the other. Gzipped files become one valid gzip file. */
export async function concatenate(files: readonly string[], path: string, signal: AbortSignal): Promise<void> {
  async function* bytes(): AsyncGenerator<Buffer> {
    for (const file of files) yield* createReadStream(file)
  }
  await pipeline(bytes, createWriteStream(path), { signal })
}
