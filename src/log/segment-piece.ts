import type { SegmentRef } from './segment-source.ts'

/** Bytes of a segment as the log stores them, from `at` on. The first piece of a segment has its header, and none has its footer. */
export type SegmentPiece = SegmentRef & { readonly at: number; readonly chunks: readonly Uint8Array[] }

export function pieceBytes({ chunks }: Pick<SegmentPiece, 'chunks'>): number {
  let bytes = 0
  for (const chunk of chunks) bytes += chunk.byteLength
  return bytes
}

/** Stores pieces as segments that were not sealed, which the recovery of a log seals. */
export interface PieceSink {
  /** Returns how many bytes it has. Throws if it names no segment. */
  write(piece: SegmentPiece): Promise<number>
  /** Removes all that was written of the segment. Idempotent. */
  remove(segment: SegmentRef): Promise<void>
  /** All that was written is durable then. */
  close(): Promise<void>
}
