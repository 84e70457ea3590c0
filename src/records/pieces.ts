/**
 * Rows that a statement takes at once.
 *
 * DuckDB works on 2048 rows at once, and each JSON expression keeps what it parsed of all of them: of dense JSON many times the bytes of
 * the records. So where that was too much, the records are asked for in smaller pieces.
 *
 * Law: a piece is of whole vectors or of a part of one, so that rows keep their order; each row of the pieces given is in exactly one of those that come out, in the same order.
 */
import { OutOfMemory } from '#duckdb/database.ts'

export type Piece = {
  /** A table of records. */
  readonly records: string
  /** The index of the table's first record in the segment. */
  readonly first: number
  /** Rows of the table, the last one excluded. */
  readonly from: number
  readonly to: number
  /** All rows of the table: a piece that has them is read faster. */
  readonly rows: number
}

/** Rows that DuckDB works on at once. */
export const VECTOR_ROWS = 2_048

/** Where a piece didn't fit in memory, the next is this part of it; after one that did, twice as large. */
const SMALLER = 1 / 8
const LARGER = 2

/** The records of the pieces, each with the index that it has in the segment. */
export function recordsOf(pieces: readonly Piece[]): string {
  const of = ({ records, first, from, to, rows }: Piece): string => {
    const where = from === 0 && to === rows ? '' : ` WHERE rowid BETWEEN ${from} AND ${to - 1}`
    return `SELECT *, ${first} + rowid AS record_index FROM ${records}${where}`
  }
  return pieces.map(of).join(' UNION ALL ')
}

/** Cuts the pieces until `work` has memory for each. A row for which there is none is handed to `tooComplex`. */
export async function cutToFit(
  pieces: readonly Piece[],
  work: (piece: Piece) => Promise<unknown>,
  tooComplex: (row: Piece, error: OutOfMemory) => void,
): Promise<readonly Piece[]> {
  const fitting: Piece[] = []
  let rowsMax = Number.POSITIVE_INFINITY
  for (const whole of pieces) {
    for (let { from } = whole; from < whole.to; ) {
      const piece = { ...whole, from, to: endOf(whole, from, rowsMax) }
      const rows = piece.to - from
      const isDone = await orIfOutOfMemory(
        async () => {
          await work(piece)
          fitting.push(piece)
          rowsMax *= LARGER
          return true
        },
        (error) => {
          rowsMax = Math.ceil(Math.min(rows, VECTOR_ROWS) * SMALLER)
          if (rows === 1) tooComplex(piece, error)
          return rows === 1
        },
      )
      if (isDone) from = piece.to
    }
  }
  return fitting
}

/** Whole vectors, or a part of one. */
function endOf({ to }: Piece, from: number, rowsMax: number): number {
  const before = from % VECTOR_ROWS
  const rows = before > 0 || rowsMax < VECTOR_ROWS ? Math.min(rowsMax, VECTOR_ROWS - before) : rowsMax
  return rows === Number.POSITIVE_INFINITY ? to : Math.min(to, from + rows - (rows > VECTOR_ROWS ? rows % VECTOR_ROWS : 0))
}

export async function orIfOutOfMemory<T>(work: () => Promise<T>, otherwise: (error: OutOfMemory) => Promise<T> | T): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof OutOfMemory)) throw error
    return otherwise(error)
  }
}
