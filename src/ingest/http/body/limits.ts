/** Tuning of how bodies are read. Bounds that clients are promised are in `model/limits.ts`. */
import { KiB } from '#lib/bytes.ts'

export const bodyLimits = {
  /** Memory that a request costs beside its body, and a decoder, which exists from the first byte of the body on, beside its output. Counted as bytes in flight. */
  requestOverheadBytes: 4 * KiB,
  decoderOverheadBytes: 128 * KiB,
  /** RFC 9659: a zstd body may ask for a window of 8 MiB at most. */
  zstdWindowLogMax: 23,
} as const
