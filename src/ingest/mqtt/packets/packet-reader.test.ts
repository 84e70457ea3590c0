import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PacketReader } from './packet-reader.ts'
import { MqttError } from './reason.ts'

const bytesMax = 200_000

/** Creates a packet. `lengthBytes` pads its length field. */
function packet(type: number, body: Uint8Array, lengthBytes = 0): Buffer {
  const length: number[] = []
  let rest = body.length
  do {
    const byte = rest % 128
    rest = Math.floor(rest / 128)
    length.push(rest > 0 || length.length + 1 < lengthBytes ? byte | 0x80 : byte)
  } while (rest > 0 || length.length < lengthBytes)
  return Buffer.concat([Buffer.from([type << 4, ...length]), body])
}

/** Pauses after each `atOnce` packets, and continues at the offset that the reader returned. */
function read(reader: PacketReader, chunks: readonly Buffer[], atOnce = Number.POSITIVE_INFINITY): Buffer[] {
  const found: Buffer[] = []
  for (const chunk of chunks) {
    for (let start = 0; start < chunk.length; ) {
      start += reader.push(chunk.subarray(start), (bytes, at, body, end) => {
        // Type, length and body are unchanged, wherever the packet is in the chunk.
        expect(body).toBeGreaterThan(at + 1)
        expect(body).toBeLessThanOrEqual(end)
        found.push(Buffer.from(bytes.subarray(at, end)))
        return found.length % atOnce > 0
      })
    }
  }
  return found
}

function split(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end))
}

const packets = fc.array(
  fc
    .record({
      type: fc.integer({ min: 0, max: 15 }),
      body: fc.oneof(
        fc.uint8Array({ maxLength: 300 }),
        fc.constantFrom(127, 128, 16_383, 16_384, 70_000).map((n) => new Uint8Array(n)),
      ),
      lengthBytes: fc.integer({ min: 0, max: 4 }),
    })
    .map(({ type, body, lengthBytes }) => packet(type, body, lengthBytes)),
  { maxLength: 8 },
)

describe('packets cut anywhere', () => {
  test('are complete and in order', () => {
    fc.assert(
      fc.property(packets, fc.array(fc.nat(), { maxLength: 40 }), fc.integer({ min: 1, max: 9 }), (sent, cuts, atOnce) => {
        const reader = new PacketReader(bytesMax)
        const found = read(reader, split(Buffer.concat(sent), cuts), atOnce)
        expect(found.map((each) => each.toString('latin1'))).toEqual(sent.map((each) => each.toString('latin1')))
        expect(reader.isPartial).toBe(false)
        expect(reader.heldBytes).toBe(0)
      }),
    )
  })
  test('may arrive byte by byte', () => {
    const sent = [packet(12, Buffer.alloc(0)), packet(3, Buffer.alloc(20_000, 7)), packet(3, Buffer.alloc(1), 4)]
    const bytes = Buffer.concat(sent)
    expect(
      read(
        new PacketReader(bytesMax),
        Array.from(bytes, (byte) => Buffer.from([byte])),
      ),
    ).toEqual(sent)
  })
})

test('held bytes are one buffer, which grows with the bytes received, not with the announced length', () => {
  const reader = new PacketReader(1_100_000)
  const bytes = packet(3, Buffer.alloc(1_000_000))
  read(reader, [bytes.subarray(0, 100)])
  expect(reader.heldBytes).toBe(100)
  for (let at = 100; at < 50_000; at += 1) read(reader, [bytes.subarray(at, at + 1)])
  expect(reader.isPartial).toBe(true)
  expect(reader.heldBytes).toBeGreaterThanOrEqual(50_000)
  expect(reader.heldBytes).toBeLessThanOrEqual(100_000)
  expect(read(reader, [bytes.subarray(50_000)])).toEqual([bytes])
})

describe('a length', () => {
  test.each([0, 1, 2, 3, 4])('of five bytes is malformed (§1.5.5), cut at %i', (cut) => {
    const bytes = Buffer.from([0x30, 0xff, 0xff, 0xff, 0xff, 0x01])
    const reader = new PacketReader(bytesMax)
    expect(() => read(reader, [bytes.subarray(0, cut + 1), bytes.subarray(cut + 1)])).toThrow(
      expect.objectContaining({ reason: 'malformed_packet' }),
    )
  })
  test.each([2, 3, 4, 5])('beyond the bound is refused as soon as it has arrived, cut at %i', (cut) => {
    const bytes = Buffer.from([0x30, 0xff, 0xff, 0xff, 0x7f])
    const reader = new PacketReader(bytesMax)
    expect(() => read(reader, [bytes.subarray(0, cut), bytes.subarray(cut)])).toThrow(MqttError)
    expect(reader.heldBytes).toBeLessThan(10)
  })
  test('bounds the packet with its header', () => {
    const exact = packet(3, Buffer.alloc(1_000 - 3))
    expect(read(new PacketReader(1_000), [exact])).toEqual([exact])
    expect(() => read(new PacketReader(999), [exact])).toThrow('a packet has 1000 bytes; the limit is 999')
  })
  test('has a bound that may change between two packets', () => {
    const reader = new PacketReader(10)
    const [first, second] = [packet(1, Buffer.alloc(8)), packet(3, Buffer.alloc(5_000))]
    const found: number[] = []
    reader.push(Buffer.concat([first, second]), (_bytes, at, _body, end) => {
      reader.bytesMax = bytesMax
      found.push(end - at)
      return true
    })
    expect(found).toEqual([10, 5_003])
  })
})

test('returning false stops reading', () => {
  let visits = 0
  const bytes = Buffer.concat([packet(12, Buffer.alloc(0)), packet(12, Buffer.alloc(0))])
  new PacketReader(bytesMax).push(bytes, () => {
    visits += 1
    return false
  })
  expect(visits).toBe(1)
})
