import { randomBytes } from 'node:crypto'

const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** Whether the text is a UUID of RFC 9562, in any case. */
export function isUuid(text: string | undefined): text is string {
  return text !== undefined && pattern.test(text)
}

/** Returns a UUID of version 7 (RFC 9562): ids sort by their time, in epoch ms. */
export function timeOrderedUuid(atMs: number): string {
  return format(atMs, randomBytes(10))
}

/** Returns the lowest id of this time. */
export function lowestUuidAt(atMs: number): string {
  return format(atMs, Buffer.alloc(10))
}

function format(atMs: number, rest: Buffer): string {
  const bytes = Buffer.concat([Buffer.alloc(6), rest])
  bytes.writeUIntBE(Math.min(Math.max(atMs, 0), 2 ** 48 - 1), 0, 6)
  return printUuid(bytes, 7)
}

/** Prints 16 bytes as a UUID of this version, which replaces some of their bits. */
export function printUuid(bytes: Buffer, version: 4 | 7): string {
  bytes.writeUInt8((version << 4) | (bytes.readUInt8(6) & 0x0f), 6)
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
