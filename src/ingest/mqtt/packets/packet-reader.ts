/**
 * Splits bytes from the network into packets.
 *
 * Owns: the bytes of an incomplete packet. Does not own: the content of a packet.
 * Law: it holds less than one packet. A packet longer than `bytesMax` is refused by its announced length. The memory grows with the
 * bytes that arrived, not with the announced length, and is a single buffer.
 */
import { Buffer } from 'node:buffer'
import { MqttError } from './reason.ts'

/** Type, flags and the length of the rest, §1.5.5: one byte and one to four. */
const LENGTH_BYTES_MAX = 4
const TOP_BIT = 0x80
const HEADER_BYTES_MAX = 1 + LENGTH_BYTES_MAX

const noBytes = Buffer.alloc(0)

/** The packet is `bytes` from `at` to `end`; its variable header starts at `body`. Returning false stops reading after it. */
export type VisitPacket = (bytes: Buffer, at: number, body: number, end: number) => boolean

export class PacketReader {
  /** Bound on a complete packet, with its fixed header. */
  bytesMax: number
  #held: Buffer = noBytes
  #heldBytes = 0
  /** Length of the held packet, or 0 while its length field is incomplete. */
  #neededBytes = 0

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** Whether the current packet is incomplete. */
  get isPartial(): boolean {
    return this.#heldBytes > 0
  }

  /** Memory in use. */
  get heldBytes(): number {
    return this.#held.length
  }

  /** Returns how many bytes of the chunk it has read. Throws MqttError, and must not be used afterwards. */
  push(chunk: Buffer, visit: VisitPacket): number {
    let at = 0
    if (this.#heldBytes > 0) {
      at = this.#complete(chunk)
      if (this.#heldBytes < this.#neededBytes || this.#neededBytes === 0) return chunk.length
      const packet = this.#held
      const end = this.#neededBytes
      this.#held = noBytes
      this.#heldBytes = this.#neededBytes = 0
      if (!visit(packet, 0, bodyOf(packet, 0, end) ?? end, end)) return at
    }
    while (at < chunk.length) {
      const body = bodyOf(chunk, at, chunk.length)
      const bytes = body === undefined ? 0 : this.#bytesOf(chunk, at, body)
      if (body === undefined || at + bytes > chunk.length) {
        this.#hold(chunk, at, bytes)
        return chunk.length
      }
      at += bytes
      if (!visit(chunk, at - bytes, body, at)) return at
    }
    return at
  }

  #hold(chunk: Buffer, at: number, neededBytes: number): void {
    this.#neededBytes = neededBytes
    this.#append(chunk, at, chunk.length)
  }

  /** Completes the held packet as far as possible. Returns where the rest of the chunk starts. */
  #complete(chunk: Buffer): number {
    let at = 0
    while (this.#neededBytes === 0 && at < chunk.length) {
      this.#append(chunk, at, at + 1)
      at += 1
      const body = bodyOf(this.#held, 0, this.#heldBytes)
      if (body !== undefined) this.#neededBytes = this.#bytesOf(this.#held, 0, body)
    }
    const end = Math.min(chunk.length, at + this.#neededBytes - this.#heldBytes)
    if (end > at) this.#append(chunk, at, end)
    return Math.max(at, end)
  }

  #append(chunk: Buffer, start: number, end: number): void {
    const bytes = this.#heldBytes + end - start
    if (bytes > this.#held.length) {
      const grownBytes = Math.max(bytes, 2 * this.#held.length)
      const grown = Buffer.allocUnsafeSlow(this.#neededBytes === 0 ? HEADER_BYTES_MAX : Math.min(grownBytes, this.#neededBytes))
      this.#held.copy(grown, 0, 0, this.#heldBytes)
      this.#held = grown
    }
    chunk.copy(this.#held, this.#heldBytes, start, end)
    this.#heldBytes = bytes
  }

  #bytesOf(bytes: Buffer, at: number, body: number): number {
    let length = 0
    for (let next = body - 1; next > at; next -= 1) length = length * TOP_BIT + ((bytes[next] ?? 0) & ~TOP_BIT)
    const packetBytes = body - at + length
    if (packetBytes > this.bytesMax)
      throw new MqttError('packet_too_large', `a packet has ${packetBytes} bytes; the limit is ${this.bytesMax}`)
    return packetBytes
  }
}

/** Returns where the length field ends, or undefined if it is incomplete. */
function bodyOf(bytes: Buffer, at: number, end: number): number | undefined {
  for (let next = at + 1; next < end; next += 1) {
    if (((bytes[next] ?? 0) & TOP_BIT) === 0) return next + 1
    if (next - at === LENGTH_BYTES_MAX) throw new MqttError('malformed_packet', 'the length of a packet has more than four bytes')
  }
  return undefined
}
