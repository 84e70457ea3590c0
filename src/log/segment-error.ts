export type SegmentProblem =
  /** Not a segment, or of a format version that this program cannot read. */
  | 'foreign'
  /** Not sealed: it has no footer. */
  | 'unsealed'
  | 'damaged'

export class SegmentError extends Error {
  override readonly name = 'SegmentError'
  /** Where the segment is stored. */
  readonly path: string
  readonly problem: SegmentProblem
  /** Byte offset in the decompressed segment. */
  readonly offset: number

  constructor(path: string, problem: SegmentProblem, offset: number, message: string) {
    super(`${path}: ${message}`)
    this.path = path
    this.problem = problem
    this.offset = offset
  }
}
