import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { FrameInput } from '../../frame.ts'
import { decodeFrame, encodedBytes, encodeFrame } from './frame.ts'

const frames: fc.Arbitrary<FrameInput> = fc.record({
  layout: fc.constantFrom('lines', 'single', 'texts'),
  receivedAtMicros: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  recordCount: fc.integer({ min: 0, max: 0xffff_ffff }),
  envelope: fc.uint8Array({ maxLength: 80 }),
  payload: fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 4 }),
})
const salts = fc.record({ length: fc.integer({ min: 0, max: 0xffff_fffe }), crc: fc.integer({ min: 0, max: 0xffff_ffff }) })

describe('a frame', () => {
  test('round-trips', () => {
    fc.assert(
      fc.property(frames, salts, fc.boolean(), (frame, salt, startsGroup) => {
        const before = Buffer.from('before')
        const bytes = Buffer.concat([before, encodeFrame(frame, salt, startsGroup), Buffer.from('behind')])
        const decoded = decodeFrame(bytes, before.byteLength, salt, 100)
        expect(decoded).toMatchObject({ bytes: encodedBytes(frame), startsGroup })
        if (typeof decoded === 'string') return
        const { at = 0, ...fields } = decoded.frame
        expect(bytes.subarray(at - 100, at - 100 + fields.payload.byteLength).equals(fields.payload)).toBe(true)
        expect({ ...fields, envelope: [...fields.envelope], payload: [...fields.payload] }).toEqual({
          ...frame,
          envelope: [...frame.envelope],
          payload: frame.payload.flatMap((chunk) => [...chunk]),
        })
      }),
    )
  })

  test('is short if it is cut anywhere', () => {
    fc.assert(
      fc.property(frames, salts, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (frame, salt, share) => {
        const bytes = encodeFrame(frame, salt, true)
        expect(decodeFrame(bytes.subarray(0, Math.floor(share * bytes.byteLength)), 0, salt)).toBe('short')
      }),
    )
  })

  test('is corrupt if any bit is flipped, even in its length', () => {
    fc.assert(
      fc.property(frames, salts, fc.nat(), (frame, salt, at) => {
        const bytes = encodeFrame(frame, salt, false)
        flip(bytes, at)
        expect(decodeFrame(bytes, 0, salt)).toBe('corrupt')
      }),
      { numRuns: 2_000 },
    )
  })

  test('is never decoded if many bits are flipped and its end is cut', () => {
    const flips = fc.array(fc.nat(), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(frames, salts, flips, fc.integer({ min: 0, max: 3 }), (frame, salt, places, cut) => {
        const original = encodeFrame(frame, salt, false)
        const bytes = Buffer.from(original)
        for (const at of places) flip(bytes, at)
        const kept = bytes.subarray(0, bytes.byteLength - cut)
        if (!kept.equals(original)) expect(decodeFrame(kept, 0, salt)).toBeTypeOf('string')
      }),
      { numRuns: 2_000 },
    )
  })

  test('is corrupt in another segment', () => {
    fc.assert(
      fc.property(frames, salts, salts, (frame, salt, other) => {
        fc.pre(salt.length !== other.length)
        expect(decodeFrame(encodeFrame(frame, salt, true), 0, other)).toBe('corrupt')
        expect(decodeFrame(encodeFrame(frame, salt, true), 0, { ...salt, crc: (salt.crc ^ 1) >>> 0 })).toBe('corrupt')
      }),
    )
  })

  test('is never found in random bytes or zeros', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), salts, (bytes, salt) => {
        expect(decodeFrame(Buffer.from(bytes), 0, salt)).toBe(bytes.byteLength < 8 ? 'short' : 'corrupt')
      }),
    )
    expect(decodeFrame(Buffer.alloc(4_096), 0, { length: 0, crc: 0 })).toBe('corrupt')
  })

  test('is rejected if its header cannot describe it', () => {
    const frame: FrameInput = {
      layout: 'single',
      receivedAtMicros: 0,
      recordCount: 1,
      envelope: new Uint8Array(),
      payload: [],
    }
    expect(() => encodedBytes({ ...frame, recordCount: 2 ** 32 })).toThrow('u32')
    expect(() => encodedBytes({ ...frame, recordCount: -1 })).toThrow('u32')
  })
})

function flip(bytes: Buffer, place: number): void {
  const at = place % (bytes.byteLength * 8)
  bytes[at >> 3] = (bytes[at >> 3] ?? 0) ^ (1 << (at & 7))
}
