import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { FrameInput } from '../../frame.ts'
import { encodeFrame, type Salt } from '../format/frame.ts'
import { SegmentTally } from '../format/segment-tally.ts'
import { FrameGroup } from './frame-group.ts'

const copiedPayloadBytesMax = 100
const salt: Salt = { length: 0x1234_5678, crc: 0x9abc_def0 }

const frames = fc.array(
  fc.record({
    layout: fc.constantFrom('lines', 'single', 'texts'),
    receivedAtMicros: fc.maxSafeNat(),
    recordCount: fc.integer({ min: 0, max: 0xffff_ffff }),
    envelope: fc.uint8Array({ maxLength: 80 }),
    payload: fc.array(fc.uint8Array({ maxLength: 120 }), { maxLength: 3 }),
  }),
  { minLength: 1, maxLength: 30 },
)

test('a group is written as its frames, and counted as them, although callers reuse what was copied', () => {
  fc.assert(
    fc.property(frames, fc.nat(4_000), (inputs, initialBytes) => {
      const expected = Buffer.concat(inputs.map((frame, index) => encodeFrame(frame, salt, index === 0)))
      const tally = new SegmentTally(salt)
      let at = 0
      for (const frame of inputs) {
        const bytes = encodeFrame(frame, salt, at === 0)
        tally.add(frame, Buffer.concat(frame.payload).length, bytes.readUInt32LE(8))
        at += bytes.length
      }
      const group = new FrameGroup({ copiedPayloadBytesMax, initialBytes })
      for (const frame of inputs) {
        const isCopied = Buffer.concat(frame.payload).length <= copiedPayloadBytesMax
        const reused: FrameInput = isCopied
          ? { ...frame, envelope: frame.envelope.slice(), payload: frame.payload.map((piece) => piece.slice()) }
          : frame
        group.add(reused)
        if (isCopied) for (const bytes of [reused.envelope, ...reused.payload]) bytes.fill(0xee)
      }
      expect([group.frames, group.bytes]).toEqual([inputs.length, expected.length])
      expect(Buffer.concat(group.complete(salt)).equals(expected)).toBe(true)
      const own = new SegmentTally(salt)
      group.tally(own)
      expect(own.footer(at, 1)).toEqual(tally.footer(at, 1))
    }),
  )
})
