import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeFooter,
  decodeHeader,
  encodeFooter,
  encodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  isLogName,
  parseSegmentName,
  segmentName,
  segmentSuffixes,
} from './segment-file.ts'

const header = {
  logName: '0b8fbf52-0d6e-4f0f-9a83-7f8f9c1d2e3f',
  incarnation: 'a1b2c3d4e5',
  seq: 4_294_967_297,
  createdAtMicros: 2 ** 52 + 1,
  salt: { length: 0xfedc_ba98, crc: 0x8765_4321 },
}
const footer = {
  frames: 3,
  records: 2 ** 40,
  payloadBytes: 7,
  firstReceivedAtMicros: 1,
  lastReceivedAtMicros: 2,
  sealedAtMicros: 3,
  damagedRecords: 5,
  offset: 999,
  chain: 0xfedc_ba98,
}

describe('names', () => {
  test('round-trip', () => {
    for (const suffix of segmentSuffixes) {
      const name = segmentName(header, suffix)
      expect(name).toBe(`004294967297-a1b2c3d4e5.${suffix}`)
      expect(parseSegmentName(name)).toEqual({ seq: header.seq, incarnation: header.incarnation, suffix })
    }
  })

  test.each([
    'high-water',
    '000000000001-a1b2c3d4e5.wal.tmp',
    '1-a1b2c3d4e5.wal',
    '000000000001-A1B2C3D4E5.wal',
    '000000000001-a1b2c3d4e5.old',
  ])('%s is not a segment', (name) => expect(parseSegmentName(name)).toBeUndefined())

  test('a log name is a safe file name', () => {
    expect(['a', header.logName, 'x_1'].every(isLogName)).toBe(true)
    expect(['', '.', '..', 'a/b', '-a', 'a b', 'é', 'x'.repeat(65)].some(isLogName)).toBe(false)
  })
})

describe('the header', () => {
  test('round-trips', () => {
    expect(encodeHeader(header).byteLength).toBe(HEADER_BYTES)
    expect(decodeHeader(encodeHeader(header))).toEqual(header)
  })

  test('reports what is wrong', () => {
    const bytes = encodeHeader(header)
    expect(decodeHeader(Buffer.alloc(0))).toBe('short')
    expect(decodeHeader(bytes.subarray(0, 60))).toBe('short')
    expect(decodeHeader(Buffer.from('PAR1 and more'))).toBe('foreign')
  })

  test('is rejected if any bit is flipped', () => {
    fc.assert(
      fc.property(fc.nat(HEADER_BYTES * 8 - 1), (bit) => {
        const bytes = encodeHeader(header)
        bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        expect(decodeHeader(bytes)).toBe(bit < 64 ? 'foreign' : 'corrupt')
      }),
    )
  })
})

describe('the footer', () => {
  const { salt } = header

  test('round-trips', () => {
    expect(decodeFooter(encodeFooter(footer, salt), 0, salt)).toEqual(footer)
  })

  test('is rejected if it is cut, flipped, or of another segment', () => {
    const bytes = encodeFooter(footer, salt)
    expect(decodeFooter(bytes.subarray(0, FOOTER_BYTES - 1), 0, salt)).toBeUndefined()
    expect(decodeFooter(bytes, 0, { ...salt, length: 1 })).toBeUndefined()
    expect(decodeFooter(bytes, 0, { ...salt, crc: 1 })).toBeUndefined()
    fc.assert(
      fc.property(fc.nat(FOOTER_BYTES * 8 - 1), (bit) => {
        const flipped = Buffer.from(bytes)
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        expect(decodeFooter(flipped, 0, salt)).toBeUndefined()
      }),
    )
  })
})
