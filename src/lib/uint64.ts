import type { Buffer } from 'node:buffer'

/** Writes a number up to 2^53 as eight bytes, little-endian. Twice as fast as going through a BigInt. */
export function writeUInt64(into: Buffer, value: number, offset: number): void {
  into.writeUInt32LE(value % 0x1_0000_0000, offset)
  into.writeUInt32LE(Math.floor(value / 0x1_0000_0000), offset + 4)
}

export function readUInt64(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset) + bytes.readUInt32LE(offset + 4) * 0x1_0000_0000
}
