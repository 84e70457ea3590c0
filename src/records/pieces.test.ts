import fc from 'fast-check'
import { expect, test } from 'vitest'
import { OutOfMemory } from '#duckdb/database.ts'
import { runs } from '../../test/support/thorough.ts'
import { cutToFit, type Piece } from './pieces.ts'

const outOfMemory = new OutOfMemory('Out of Memory Error: no room\nadvice')

test('cutting keeps each row once and in order, except rows that never fit', async () => {
  const weights = fc.array(fc.record({ at: fc.nat(9_999), weight: fc.integer({ min: 1, max: 120 }) }), { maxLength: 30 })
  await fc.assert(
    fc.asyncProperty(
      weights,
      fc.integer({ min: 10_000, max: 20_000 }),
      fc.integer({ min: 1, max: 5_000 }),
      async (heavy, rows, base) => {
        const weightOf = new Map(heavy.map(({ at, weight }) => [at, weight]))
        const room = 100
        const fits = ({ from, to }: Piece): boolean => {
          let weight = (Math.min(to - from, 2_048) / base) * 10
          for (const [at, each] of weightOf) if (at >= from && at < to) weight += each
          return weight <= room
        }
        const tooComplex: number[] = []
        const pieces: Piece[] = []
        await cutToFit(
          [{ from: 0, to: rows }],
          async (piece) => {
            if (!fits(piece)) throw outOfMemory
            pieces.push(piece)
          },
          ({ from }) => tooComplex.push(from),
        )
        const seen = [...pieces.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, index) => from + index))]
        expect([...seen, ...tooComplex].sort((a, b) => a - b)).toEqual(Array.from({ length: rows }, (_, index) => index))
        expect(seen).toEqual(seen.toSorted((a, b) => a - b))
        expect(tooComplex.every((from) => !fits({ from, to: from + 1 }))).toBe(true)
      },
    ),
    { numRuns: runs(10, 40) },
  )
})

test('other errors are not retried with smaller pieces', async () => {
  const piece = { records: 'records_0', first: 0, from: 0, to: 10, rows: 10 }
  const work = () => Promise.reject(new Error('no space left'))
  await expect(cutToFit([piece], work, () => undefined)).rejects.toThrow('no space left')
})
