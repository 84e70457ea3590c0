/**
 * The rows that one statement processes.
 *
 * DuckDB processes 2048 rows at once, and each JSON expression holds everything that it parsed from them. For dense JSON, that is many
 * times the size of the records. A statement that runs out of memory is therefore repeated with smaller pieces.
 *
 * Law: a piece consists of whole vectors, or of part of one, so that rows keep their order. Cutting keeps every row once and in order.
 */
import { OutOfMemory } from '#duckdb/database.ts'

export type Piece = {
  /** A table of records. */
  readonly records: string
  /** The index of the table's first record in the segment. */
  readonly first: number
  /** Range of rows; `to` is not included. */
  readonly from: number
  readonly to: number
  /** Number of rows of the table. A piece with all of them is read faster. */
  readonly rows: number
}

/** Rows that DuckDB processes at once. */
export const VECTOR_ROWS = 2_048

/** A piece that did not fit in memory is cut to this part; after a piece that fitted, the size doubles. */
const SMALLER = 1 / 8
const LARGER = 2

/** SQL for the records of the pieces, with their index in the segment. */
export function recordsSql(pieces: readonly Piece[]): string {
  const of = ({ records, first, from, to, rows }: Piece): string => {
    const where = from === 0 && to === rows ? '' : ` WHERE rowid BETWEEN ${from} AND ${to - 1}`
    return `SELECT *, ${first} + rowid AS record_index FROM ${records}${where}`
  }
  return pieces.map(of).join(' UNION ALL ')
}

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
      const piece = { ...whole, from, to: endOf(whole, from, rowsMax) }
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

/** Returns the end of the next piece: after whole vectors, or after a part of one. */
function endOf({ to }: Piece, from: number, rowsMax: number): number {
  const before = from % VECTOR_ROWS
  const rows = before > 0 || rowsMax < VECTOR_ROWS ? Math.min(rowsMax, VECTOR_ROWS - before) : rowsMax
  return rows === Number.POSITIVE_INFINITY ? to : Math.min(to, from + rows - (rows > VECTOR_ROWS ? rows % VECTOR_ROWS : 0))
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
