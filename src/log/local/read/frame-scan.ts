/**
 * Finds every intact frame of a file, also behind damage.
 *
 * Owns: the search for the next intact frame. Does not own: what damage means (recover/inspection.ts).
 * Law: a frame or footer is yielded only if its checksums match the salt, which no client knows. So the search may look at every byte.
 */
import { Buffer } from 'node:buffer'
import type { OpenFile } from '#lib/files.ts'
import { type DecodedFrame, decodeFrame, peekFrameBytes, type Salt } from '../format/frame.ts'
import { decodeFooter, FOOTER_BYTES, type FooterRecord, HEADER_BYTES, startsFooter } from '../format/segment-file.ts'
import { plainSource } from './byte-source.ts'
import { readFrames } from './frame-stream.ts'

export type Damage = { readonly offset: number; readonly bytes: number }

export type Found =
  /** Intact frames, one behind the other. They are views, valid until the next step. */
  | { readonly kind: 'frames'; readonly offset: number; readonly frames: readonly DecodedFrame[] }
  | { readonly kind: 'footer'; readonly offset: number; readonly footer: FooterRecord }
  /** Bytes that belong to no intact frame or footer. `startsFrame`: the start of a frame that is cut short is among them. */
  | ({ readonly kind: 'damage'; readonly startsFrame: boolean } & Damage)

/** Yields what is behind the header, in order, up to `end`. */
export async function* scanFrames(
  file: OpenFile,
  { salt, end, bufferBytesMax }: { readonly salt: Salt; readonly end: number; readonly bufferBytesMax: number },
): AsyncGenerator<Found, void> {
  for (let at = HEADER_BYTES; at < end; ) {
    const bufferBytes = Math.min(bufferBytesMax, end - at + 1)
    const run = readFrames(plainSource(file, at, end), { salt, offset: at, bufferBytesMax: bufferBytes })
    let step = await run.next()
    for (; step.done !== true; step = await run.next()) {
      yield { kind: 'frames', offset: at, frames: step.value }
      for (const { bytes } of step.value) at += bytes
    }
    let from = at + 1
    if (step.value.kind === 'footer') {
      yield { kind: 'footer', offset: at, footer: step.value.footer }
      at += FOOTER_BYTES
      from = at
    }
    if (at >= end) return
    const next = await findNextIntact(file, from, end, salt)
    const startsFrame = step.value.kind === 'end' && step.value.isFrame
    yield { kind: 'damage', offset: at, bytes: next - at, startsFrame }
    at = next
  }
}

const SEARCH_BYTES = 1024 * 1024
const PREFIX_BYTES = 8

/** Returns the offset of the first intact frame or footer at or after `from`, `end` if there is none. */
async function findNextIntact(file: OpenFile, from: number, end: number, salt: Salt): Promise<number> {
  const buffer = Buffer.allocUnsafe(Math.min(SEARCH_BYTES, Math.max(end - from, 0)) + PREFIX_BYTES)
  for (let base = from; base < end; base += SEARCH_BYTES) {
    const got = await file.read(buffer.subarray(0, Math.min(buffer.byteLength, end - base)), base)
    const bytes = buffer.subarray(0, got)
    for (let at = 0; at < Math.min(SEARCH_BYTES, got - PREFIX_BYTES + 1); at += 1) {
      const frameBytes = peekFrameBytes(bytes, at, salt)
      const wanted = typeof frameBytes === 'number' ? frameBytes : startsFooter(bytes, at) ? FOOTER_BYTES : undefined
      if (wanted === undefined || base + at + wanted > end) continue
      if (await isIntact(file, base + at, wanted, salt)) return base + at
    }
  }
  return end
}

async function isIntact(file: OpenFile, at: number, wanted: number, salt: Salt): Promise<boolean> {
  const bytes = Buffer.allocUnsafe(wanted)
  if ((await file.read(bytes, at)) !== wanted) return false
  return decodeFooter(bytes, 0, salt) !== undefined || typeof decodeFrame(bytes, 0, salt) === 'object'
}
