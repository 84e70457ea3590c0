/**
 * Cuts what comes from the network into packets.
 *
 * Owns: the bytes of a packet that is not whole yet. Does not own: what a packet says.
 * Law: it holds less than one packet, and none is longer than `bytesMax`: a longer one is refused by its length alone, before it comes.
 */
import { Buffer } from 'node:buffer'
import { KiB } from '#model/limits.ts'
import { Refusal } from './reason.ts'

/** Type, flags and the length of the rest, [MQTT-1.5.5]: one byte and one to four. */
const LENGTH_BYTES_MAX = 4
const TOP_BIT = 0x80

/** The beginning of a packet is copied out of a large chunk, which it would keep in memory. */
const copiedBytesMax = 16 * KiB

/** `bytes` from `at` to `end` are the packet; its variable header starts at `body`. False stops the reading. */
export type VisitPacket = (bytes: Buffer, at: number, body: number, end: number) => boolean

export class PacketReader {
  /** Of a whole packet, its fixed header included. */
  bytesMax: number
  #held: Buffer[] = []
  #heldBytes = 0
  /** Bytes without which nothing more can be said. */
  #neededBytes = 0

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** Whether a packet has begun that is not whole. */
  get isPartial(): boolean {
    return this.#heldBytes > 0
  }

  /** Throws Refusal. Then, and once `visit` says false, this reader is not to be used again. */
  push(chunk: Buffer, visit: VisitPacket): void {
    let bytes = chunk
    if (this.#heldBytes > 0) {
      this.#held.push(chunk)
      this.#heldBytes += chunk.length
      if (this.#heldBytes < this.#neededBytes) return
      bytes = Buffer.concat(this.#held)
      this.#held = []
      this.#heldBytes = 0
    }
    let at = 0
    while (at < bytes.length) {
      const body = bodyOf(bytes, at)
      if (body === undefined) {
        this.#hold(bytes, at, bytes.length - at + 1)
        return
      }
      const end = body + lengthOf(bytes, at, body)
      if (end - at > this.bytesMax) {
        throw new Refusal('packet_too_large', `a packet of ${end - at} bytes is more than ${this.bytesMax}`)
      }
      if (end > bytes.length) {
        this.#hold(bytes, at, end - at)
        return
      }
      if (!visit(bytes, at, body, end)) return
      at = end
    }
  }

  #hold(bytes: Buffer, at: number, neededBytes: number): void {
    const rest = bytes.subarray(at)
    this.#held = [rest.length <= copiedBytesMax ? Buffer.from(rest) : rest]
    this.#heldBytes = rest.length
    this.#neededBytes = neededBytes
  }
}

/** Where the length ends, or undefined where it is not whole. */
function bodyOf(bytes: Buffer, at: number): number | undefined {
  for (let next = at + 1; next < bytes.length; next += 1) {
    if (((bytes[next] ?? 0) & TOP_BIT) === 0) return next + 1
    if (next - at === LENGTH_BYTES_MAX) throw new Refusal('malformed_packet', 'the length of a packet has more than four bytes')
  }
  return undefined
}

function lengthOf(bytes: Buffer, at: number, body: number): number {
  let length = 0
  for (let next = body - 1; next > at; next -= 1) length = length * TOP_BIT + ((bytes[next] ?? 0) & ~TOP_BIT)
  return length
}
