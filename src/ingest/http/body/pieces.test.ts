import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KiB } from '#lib/bytes.ts'
import { runs } from '../../../../test/support/thorough.ts'
import { Pieces } from './pieces.ts'

/** As the parser of node:http passes on what it read: each piece is part of a buffer that may have much more. */
function pieceOf({ bytes, buffer }: { readonly bytes: number; readonly buffer: number }, fill: number): Buffer {
  return Buffer.alloc(Math.max(bytes, buffer), fill % 256).subarray(0, bytes)
}

const cut = fc.record({ bytes: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.nat(40 * KiB)), buffer: fc.nat(64 * KiB) })

test('pieces are the bytes in their order, and take few objects and little memory beside them', () => {
  fc.assert(
    fc.property(fc.array(cut, { maxLength: 200 }), (cuts) => {
      const pieces = new Pieces()
      const sent = cuts.map(pieceOf)
      for (const piece of sent) pieces.push(piece)
      const held = pieces.take()
      expect(Buffer.concat(held).equals(Buffer.concat(sent))).toBe(true)
      const bytes = sent.reduce((sum, { length }) => sum + length, 0)
      const memory = held.reduce((sum, { buffer }) => sum + buffer.byteLength, 0)
      expect(held.length).toBeLessThanOrEqual(17 + bytes / KiB)
      // The first sixteen may each keep a whole read, and one block is not full.
      expect(memory).toBeLessThanOrEqual(16 * 64 * KiB + 16 * KiB + 4 * bytes)
      expect(pieces.take()).toEqual([])
    }),
    { numRuns: runs(100, 3_000) },
  )
})

test('few pieces, and long ones, are not copied', () => {
  const pieces = new Pieces()
  const sent = Array.from({ length: 40 }, (_, index) => pieceOf({ bytes: index < 16 ? 1 : 16 * KiB, buffer: 64 * KiB }, index))
  for (const piece of sent) pieces.push(piece)
  expect(pieces.take().every((piece, index) => piece === sent[index])).toBe(true)
})
