/**
 * Reads the WebSocket frames of a client, and writes those of a server (RFC 6455 §5), for MQTT: binary messages without extensions.
 *
 * Owns: the checks of RFC 6455, unmasking, a frame that has not arrived completely. Does not own: the socket, what is sent in return.
 * Law: the payload of a message is passed on as it arrives, unmasked in place, so no more is held than a head and the payload of a control
 * frame. After an invalid frame or a close frame nothing is read.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { wireLimits } from './limits.ts'

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** Close codes, RFC 6455 §7.4.1. */
export const closeCodes = {
  normal: 1000,
  protocolError: 1002,
  unsupportedData: 1003,
  invalidText: 1007,
  policyViolation: 1008,
  tooLarge: 1009,
} as const

export interface FrameVisitor {
  /**
   * Parts of binary messages: of one or several, or less than one, because MQTT ignores where messages end [MQTT-6.0.0-2]. Called at most
   * once per chunk, before what follows the bytes, except for pings.
   */
  data(bytes: Buffer): void
  ping(payload: Buffer): void
  /** `payload` is the one to send in return: the code that the client gave, if any, and its reason. */
  close(payload: Buffer): void
  invalid(closeCode: number, message: string): void
}

const FINAL = 0x80
const RESERVED = 0x70
const OPCODE = 0x0f
const CONTROL = 0x08
const MASKED = 0x80
const LENGTH = 0x7f
/** Lengths that say how many bytes the length has. */
const LENGTH_16 = 126
const LENGTH_64 = 127
const MASK_BYTES = 4
const CONTROL_BYTES_MAX = 125

const noBytes = Buffer.alloc(0)

class FrameError extends Error {
  readonly closeCode: number

  constructor(closeCode: number, message: string) {
    super(message)
    this.closeCode = closeCode
  }
}

export class FrameReader {
  readonly #visitor: FrameVisitor
  /** A head that is incomplete. */
  #head: Uint8Array | undefined
  #opcode = 0
  /** Bytes of the frame that have not arrived. */
  #missingBytes = 0
  /** Little-endian: its lowest byte is the mask of the next byte. */
  #mask = 0
  /** Frames of the incomplete message, and the sum of their announced lengths. */
  #fragments = 0
  #messageBytes = 0
  #control = noBytes
  #isOver = false

  constructor(visitor: FrameVisitor) {
    this.#visitor = visitor
  }

  /** Overwrites the chunk. */
  push(chunk: Buffer): void {
    if (this.#isOver) return
    if (this.#head === undefined) {
      this.#read(chunk)
      return
    }
    const whole = Buffer.concat([this.#head, chunk])
    this.#head = undefined
    this.#read(whole)
  }

  #read(chunk: Buffer): void {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    let at = 0
    // The payloads are moved together, to `start`.
    let start = 0
    let end = 0
    let error: FrameError | undefined
    try {
      while (at < chunk.length && !this.#isOver) {
        if (this.#missingBytes === 0) {
          const payloadAt = this.#readHead(chunk, at)
          if (payloadAt === undefined) {
            this.#head = new Uint8Array(chunk.subarray(at))
            break
          }
          at = payloadAt
        }
        const bytes = Math.min(this.#missingBytes, chunk.length - at)
        if ((this.#opcode & CONTROL) === 0) {
          if (end === start) start = end = at
          unmask(view, at, end, bytes, this.#mask)
          end += bytes
        } else {
          unmask(view, at, at, bytes, this.#mask)
          chunk.copy(this.#control, this.#control.length - this.#missingBytes, at, at + bytes)
        }
        at += bytes
        this.#missingBytes -= bytes
        this.#mask = rotate(this.#mask, bytes)
        if (this.#missingBytes === 0 && (this.#opcode & CONTROL) !== 0) this.#onControlFrame()
      }
    } catch (thrown) {
      if (!(thrown instanceof FrameError)) throw thrown
      error = thrown
      this.#isOver = true
    }
    if (end > start) this.#visitor.data(chunk.subarray(start, end))
    if (error !== undefined) this.#visitor.invalid(error.closeCode, error.message)
    else if (this.#isOver) this.#visitor.close(this.#control)
  }

  /** Returns where the payload starts, or undefined if the head is incomplete. */
  #readHead(bytes: Buffer, at: number): number | undefined {
    if (bytes.length - at < 2) return undefined
    const first = bytes[at] ?? 0
    const second = bytes[at + 1] ?? 0
    this.#checkHead(first, second)
    const short = second & LENGTH
    const lengthAt = at + 2
    const maskAt = lengthAt + (short === LENGTH_64 ? 8 : short === LENGTH_16 ? 2 : 0)
    const payloadAt = maskAt + MASK_BYTES
    if (payloadAt > bytes.length) return undefined
    let length = short
    if (short === LENGTH_16) length = bytes.readUInt16BE(lengthAt)
    else if (short === LENGTH_64) length = bytes.readUInt32BE(lengthAt) * 2 ** 32 + bytes.readUInt32BE(lengthAt + 4)
    this.#mask = bytes.readInt32LE(maskAt)
    this.#missingBytes = length
    this.#opcode = first & OPCODE
    if ((this.#opcode & CONTROL) === 0) this.#countFragment(length, (first & FINAL) !== 0)
    else this.#control = length === 0 ? noBytes : Buffer.allocUnsafeSlow(length)
    return payloadAt
  }

  #checkHead(first: number, second: number): void {
    const opcode = first & OPCODE
    const length = second & LENGTH
    // §5.2: without extensions.
    if ((first & RESERVED) !== 0) throw new FrameError(closeCodes.protocolError, 'a reserved bit is set')
    if (opcode > opcodes.pong || (opcode > opcodes.binary && opcode < opcodes.close)) {
      throw new FrameError(closeCodes.protocolError, `there is no opcode ${opcode}`)
    }
    if ((second & MASKED) === 0) throw new FrameError(closeCodes.protocolError, 'it is not masked') // §5.1
    if ((opcode & CONTROL) !== 0) {
      // §5.5
      if ((first & FINAL) === 0) throw new FrameError(closeCodes.protocolError, 'a control frame is fragmented')
      if (length > CONTROL_BYTES_MAX)
        throw new FrameError(closeCodes.protocolError, `a control frame is longer than ${CONTROL_BYTES_MAX} bytes`)
      return
    }
    // §5.4
    if (opcode === opcodes.continuation && this.#fragments === 0)
      throw new FrameError(closeCodes.protocolError, 'it continues a message that has not started')
    if (opcode !== opcodes.continuation && this.#fragments > 0)
      throw new FrameError(closeCodes.protocolError, 'a message starts before the previous one has ended')
    if (opcode === opcodes.text) throw new FrameError(closeCodes.unsupportedData, 'it is not binary') // [MQTT-6.0.0-1]
  }

  #countFragment(bytes: number, isLast: boolean): void {
    this.#fragments += 1
    this.#messageBytes += bytes
    if (this.#messageBytes > wireLimits.frameBytesMax) {
      throw new FrameError(closeCodes.tooLarge, `a message is longer than ${wireLimits.frameBytesMax} bytes`)
    }
    if (this.#fragments > wireLimits.frameFragmentsMax) {
      throw new FrameError(closeCodes.policyViolation, `a message is in more than ${wireLimits.frameFragmentsMax} fragments`)
    }
    if (isLast) this.#fragments = this.#messageBytes = 0
  }

  #onControlFrame(): void {
    const payload = this.#control
    if (this.#opcode === opcodes.close) {
      checkClose(payload)
      this.#isOver = true
      return
    }
    this.#control = noBytes
    if (this.#opcode === opcodes.ping) this.#visitor.ping(payload)
  }
}

/** Returns a frame of a server: a complete message, not masked. */
export function encodeFrame(opcode: number, payload: Uint8Array): Buffer {
  const { length } = payload
  const headBytes = length < LENGTH_16 ? 2 : length <= 0xffff ? 4 : 10
  const frame = Buffer.allocUnsafe(headBytes + length)
  frame[0] = FINAL | opcode
  if (headBytes === 2) frame[1] = length
  else if (headBytes === 4) {
    frame[1] = LENGTH_16
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = LENGTH_64
    frame.writeUInt32BE(Math.floor(length / 2 ** 32), 2)
    frame.writeUInt32BE(length % 2 ** 32, 6)
  }
  frame.set(payload, headBytes)
  return frame
}

/** Returns the payload of a close frame. */
export function encodeClose(code: number): Buffer {
  const payload = Buffer.allocUnsafe(2)
  payload.writeUInt16BE(code, 0)
  return payload
}

/** §5.5.1 and §7.4: a code and a reason, or nothing. */
function checkClose(payload: Buffer): void {
  if (payload.length === 0) return
  const code = payload.length === 1 ? 0 : payload.readUInt16BE(0)
  // 1004 to 1006 are reserved, 1015 is for TLS, and 3000 to 4999 are for applications.
  const isValid = (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) || (code >= 3000 && code <= 4999)
  if (!isValid) throw new FrameError(closeCodes.protocolError, 'the code of a close frame is not valid')
  if (!isUtf8(payload.subarray(2))) throw new FrameError(closeCodes.invalidText, 'the reason of a close frame is not UTF-8')
}

/** Unmasks bytes (§5.3), four at a time, and moves them to `to`, which is not behind `from`. */
function unmask(view: DataView, from: number, to: number, bytes: number, mask: number): void {
  let at = 0
  for (; at + 4 <= bytes; at += 4) view.setInt32(to + at, view.getInt32(from + at, true) ^ mask, true)
  for (let shift = 0; at < bytes; at += 1, shift += 8) view.setUint8(to + at, view.getUint8(from + at) ^ (mask >>> shift))
}

/** Returns the mask for what follows so many bytes. */
function rotate(mask: number, bytes: number): number {
  const bits = (bytes % 4) * 8
  return bits === 0 ? mask : (mask >>> bits) | (mask << (32 - bits))
}
