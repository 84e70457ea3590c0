/**
 * The records that one statement processes.
 *
 * DuckDB processes up to 2048 rows at once, and each JSON expression holds everything that it parsed from them. For dense JSON, that is many
 * times the size of the records. A statement that runs out of memory is therefore repeated with smaller pieces.
 *
 * Law: cutting keeps every record once and in order.
 */
import { OutOfMemory } from '#duckdb/database.ts'

/** Indexes of records in the segment; `to` is not included. */
export type Piece = { readonly from: number; readonly to: number }

/** Rows that DuckDB processes at once. */
const VECTOR_ROWS = 2_048

/** A piece that did not fit in memory is cut to this part; after a piece that fitted, the size doubles. */
const SMALLER = 1 / 8
const LARGER = 2

/**
 * Cuts the pieces until `work` has enough memory for each, in order. Calls `tooComplex` for a row that does not fit by itself,
 * which otherwise fails the work.
 * `work` must keep its result: done again, or together with other pieces, it may need more memory.
 */
export async function cutToFit(
  pieces: readonly Piece[],
  work: (piece: Piece) => Promise<unknown>,
  tooComplex: (row: Piece, error: OutOfMemory) => unknown = rethrow,
): Promise<void> {
  let rowsMax = Number.POSITIVE_INFINITY
  for (const whole of pieces) {
    for (let { from } = whole; from < whole.to; ) {
      const piece = { from, to: Math.min(whole.to, from + rowsMax) }
      const rows = piece.to - from
      const isProcessed = await fallBackIfOutOfMemory(
        async () => {
          await work(piece)
          rowsMax *= LARGER
          return true
        },
        async (error) => {
          rowsMax = Math.ceil(Math.min(rows, VECTOR_ROWS) * SMALLER)
          if (rows === 1) await tooComplex(piece, error)
          return rows === 1
        },
      )
      if (isProcessed) from = piece.to
    }
  }
}

export async function fallBackIfOutOfMemory<T>(
  work: () => Promise<T>,
  fallback: (error: OutOfMemory) => Promise<T> | T,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof OutOfMemory)) throw error
    return fallback(error)
  }
}

function rethrow(_: Piece, error: OutOfMemory): never {
  throw error
}
