/**
 * Signs DNS messages with a shared secret, and verifies responses (TSIG, RFC 8945).
 *
 * Law: a response without a valid signature proves nothing.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

export type TsigKey = {
  readonly name: string
  readonly algorithm: 'hmac-sha256' | 'hmac-sha384' | 'hmac-sha512' | 'hmac-sha1'
  /** In base64. */
  readonly secret: string
}

type Tsig = {
  /** Where its record begins, which is the last one of the message. */
  readonly offset: number
  readonly seconds: number
  readonly fudge: number
  readonly mac: Buffer
  readonly originalId: number
  readonly error: number
  readonly other: Buffer
}

const tsigType = 250
const anyClass = 255
const headerBytes = 12
/** How many seconds the clocks of both sides may differ. */
const fudgeSeconds = 300

/** Returns the message with a TSIG record, and the signature, which the signature of the response covers. */
export function signMessage(message: Buffer, key: TsigKey, nowMs: number): { readonly signed: Buffer; readonly mac: Buffer } {
  const tsig = { seconds: Math.floor(nowMs / 1000), fudge: fudgeSeconds, error: 0, other: Buffer.alloc(0) }
  const mac = digest(key, [message, variables(key, tsig)])
  const data = Buffer.concat([
    wireName(key.algorithm),
    uint48(tsig.seconds),
    uint16(tsig.fudge, mac.length),
    mac,
    message.subarray(0, 2),
    uint16(tsig.error, tsig.other.length),
  ])
  const record = Buffer.concat([wireName(key.name), uint16(tsigType, anyClass, 0, 0, data.length), data])
  const signed = Buffer.concat([message, record])
  signed.writeUInt16BE(message.readUInt16BE(10) + 1, 10)
  return { signed, mac }
}

/** Returns why the response cannot be trusted, or undefined if it is signed with the key or refuses the request. */
export function findSignatureProblem(response: Buffer, requestMac: Buffer, key: TsigKey, nowMs: number): string | undefined {
  const tsig = readTsig(response)
  // A refusal may come unsigned, and is believed: it changes nothing.
  if (tsig === undefined) return isRefusal(response) ? undefined : 'the response is not signed'
  const problem = describeError(tsig, key, nowMs)
  if (problem !== undefined) return problem
  const unsigned = Buffer.from(response.subarray(0, tsig.offset))
  unsigned.writeUInt16BE(tsig.originalId, 0)
  unsigned.writeUInt16BE(response.readUInt16BE(10) - 1, 10)
  const mac = digest(key, [uint16(requestMac.length), requestMac, unsigned, variables(key, tsig)])
  if (mac.length !== tsig.mac.length || !timingSafeEqual(mac, tsig.mac)) return 'the signature of the response is wrong'
  if (Math.abs(nowMs / 1000 - tsig.seconds) > tsig.fudge) return 'the response was signed at another time'
  return undefined
}

function isRefusal(response: Buffer): boolean {
  return (response.readUInt16BE(2) & 0xf) !== 0
}

function describeError({ error, seconds, other }: Tsig, { name, algorithm }: TsigKey, nowMs: number): string | undefined {
  if (error === 0) return undefined
  if (error === 16) return `the secret of the TSIG key ${name} is not the one that the server has: check INLET_DNS_TSIG_SECRET`
  if (error === 17)
    return `the server has no TSIG key ${name} with ${algorithm}: check INLET_DNS_TSIG_NAME and INLET_DNS_TSIG_ALGORITHM`
  if (error === 18) {
    const serverSeconds = other.length === 6 ? other.readUIntBE(0, 6) : seconds
    return `the clock of the server differs from the one here by ${Math.abs(Math.round(serverSeconds - nowMs / 1000))} s: correct the wrong one`
  }
  return `the server rejected the TSIG key ${name} (TSIG error ${error})`
}

/** Returns undefined for a message without TSIG. Throws RangeError for one that is cut off. */
function readTsig(message: Buffer): Tsig | undefined {
  const questions = message.readUInt16BE(4)
  const records = message.readUInt16BE(6) + message.readUInt16BE(8) + message.readUInt16BE(10)
  if (message.readUInt16BE(10) === 0) return undefined
  let offset = headerBytes
  for (let index = 0; index < questions; index += 1) offset = endOfName(message, offset) + 4
  for (let index = 1; index < records; index += 1) {
    const fields = endOfName(message, offset)
    offset = fields + 10 + message.readUInt16BE(fields + 8)
  }
  const fields = endOfName(message, offset)
  if (message.readUInt16BE(fields) !== tsigType) return undefined
  const at = endOfName(message, fields + 10)
  const macEnd = at + 10 + message.readUInt16BE(at + 8)
  if (macEnd + 6 + message.readUInt16BE(macEnd + 4) !== message.length) throw new RangeError('the last record is cut off')
  return {
    offset,
    seconds: message.readUIntBE(at, 6),
    fudge: message.readUInt16BE(at + 6),
    mac: message.subarray(at + 10, macEnd),
    originalId: message.readUInt16BE(macEnd),
    error: message.readUInt16BE(macEnd + 2),
    other: message.subarray(macEnd + 6),
  }
}

/** A name ends with an empty label, or with a pointer of two bytes to the rest of it. */
function endOfName(message: Buffer, start: number): number {
  let offset = start
  for (;;) {
    const length = message.readUInt8(offset)
    if (length >= 0xc0) return offset + 2
    offset += 1 + length
    if (length === 0) return offset
  }
}

function variables(key: TsigKey, { seconds, fudge, error, other }: Omit<Tsig, 'offset' | 'mac' | 'originalId'>): Buffer {
  return Buffer.concat([
    wireName(key.name),
    uint16(anyClass, 0, 0),
    wireName(key.algorithm),
    uint48(seconds),
    uint16(fudge, error, other.length),
    other,
  ])
}

function digest({ algorithm, secret }: TsigKey, parts: readonly Buffer[]): Buffer {
  const hmac = createHmac(algorithm.slice('hmac-'.length), Buffer.from(secret, 'base64'))
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/** In the canonical form, which signatures cover. */
function wireName(name: string): Buffer {
  const labels = name
    .toLowerCase()
    .split('.')
    .filter((label) => label !== '')
  return Buffer.concat([...labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]), Buffer.alloc(1)])
}

function uint16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length)
  for (const [index, value] of values.entries()) bytes.writeUInt16BE(value, 2 * index)
  return bytes
}

function uint48(value: number): Buffer {
  const bytes = Buffer.alloc(6)
  bytes.writeUIntBE(value, 0, 6)
  return bytes
}
