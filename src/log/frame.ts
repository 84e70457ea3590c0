/** The unit of the log: one request or message, stored completely or not at all. Engines decide on its bytes. */

/** How the payload splits into records: at line feeds, not at all, or at record separators (1e). */
export type Layout = 'lines' | 'single' | 'texts'

type FrameFields = {
  readonly layout: Layout
  readonly receivedAtMicros: number
  readonly recordCount: number
  /** Opaque bytes that are stored before the payload. */
  readonly envelope: Uint8Array
}

/** A frame to append. Its payload must not change until the append has settled. */
export type FrameInput = FrameFields & { readonly payload: readonly Uint8Array[] }

export type Frame = FrameFields & {
  readonly payload: Uint8Array
  /** Where the payload is in what the frame was read from; undefined for a frame that was not read. */
  readonly at?: number
}

export function payloadBytes(frame: Pick<FrameInput, 'payload'>): number {
  let bytes = 0
  for (const chunk of frame.payload) bytes += chunk.byteLength
  return bytes
}
