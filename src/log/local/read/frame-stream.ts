/**
 * Reads frames from a source one after the other, in bounded memory.
 *
 * Owns: the buffer, and where the run of intact frames ends. Does not own: what that end means (segment-reader.ts, recovery.ts).
 */
import { Buffer } from 'node:buffer'
import { type DecodedFrame, decodeFrame, peekFrameBytes, type Salt } from '../format/frame.ts'
import { decodeFooter, FOOTER_BYTES, type FooterRecord, startsFooter } from '../format/segment-file.ts'
import type { ByteSource } from './byte-source.ts'

export type FrameRunEnd =
  | { readonly kind: 'footer'; readonly offset: number; readonly footer: FooterRecord; readonly trailing: boolean }
  /** The source ends inside a frame, `bytes` after its start. `bytes` is 0 if it ends between two frames. */
  | {
      readonly kind: 'end'
      readonly offset: number
      readonly bytes: number
      /** Its length is intact, so it is certainly a frame, and not a footer. */
      readonly isFrame: boolean
    }
  | { readonly kind: 'corrupt'; readonly offset: number }

/**
 * Yields the frames of each filled buffer. They are views, valid until the next step. `offset` is where the source starts in the file. A
 * frame larger than `bufferBytesMax` makes the buffer larger.
 */
export async function* readFrames(
  source: ByteSource,
  { salt, offset, bufferBytesMax }: { readonly salt: Salt; readonly offset: number; readonly bufferBytesMax: number },
): AsyncGenerator<readonly DecodedFrame[], FrameRunEnd> {
  const usualBytes = Math.max(bufferBytesMax, FOOTER_BYTES + 1)
  let buffer: Buffer = Buffer.allocUnsafe(usualBytes)
  let filled = await source.read(buffer)
  let ended = filled < buffer.byteLength
  let base = offset
  for (;;) {
    const bytes = buffer.subarray(0, filled)
    const frames: DecodedFrame[] = []
    let at = 0
    let stop: 'short' | 'corrupt' | 'footer' = 'short'
    for (;;) {
      if (startsFooter(bytes, at)) {
        stop = 'footer'
        break
      }
      const decoded = decodeFrame(bytes, at, salt, base)
      if (typeof decoded === 'string') {
        stop = decoded
        break
      }
      frames.push(decoded)
      at += decoded.bytes
    }
    if (frames.length > 0) yield frames
    const left = filled - at
    if (stop === 'corrupt') return { kind: 'corrupt', offset: base + at }
    if (ended || (stop === 'footer' && left > FOOTER_BYTES)) {
      if (stop !== 'footer')
        return { kind: 'end', offset: base + at, bytes: left, isFrame: typeof peekFrameBytes(bytes, at, salt) === 'number' }
      const footer = decodeFooter(bytes, at, salt)
      if (footer === undefined)
        return left < FOOTER_BYTES
          ? { kind: 'end', offset: base + at, bytes: left, isFrame: false }
          : { kind: 'corrupt', offset: base + at }
      return { kind: 'footer', offset: base + at, footer, trailing: left > FOOTER_BYTES }
    }
    const wanted = stop === 'footer' ? FOOTER_BYTES + 1 : peekFrameBytes(bytes, at, salt)
    // A buffer that grew stays, because large frames come one after the other: with one for each, V8 would collect its whole heap all the time.
    const isLarge = typeof wanted === 'number' && wanted > buffer.byteLength
    const next: Buffer = isLarge ? Buffer.allocUnsafe(Math.ceil(wanted / usualBytes) * usualBytes) : buffer
    buffer.copy(next, 0, at, filled)
    base += at
    buffer = next
    const got = await source.read(buffer.subarray(left))
    filled = left + got
    ended = filled < buffer.byteLength
  }
}
