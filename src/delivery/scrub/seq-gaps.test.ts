import { expect, test } from 'vitest'
import { CommittedSeqs } from './seq-gaps.ts'

function gapsOf(committed: readonly number[], seqs: readonly number[] = [], highWater?: number) {
  const of = new CommittedSeqs()
  for (const seq of committed) of.add(seq)
  return of.gaps('e', { seqs, highWater }).map(({ from, to }) => [from, to])
}

test('seqs that no commit and no file has are gaps, up to the high water', () => {
  expect(gapsOf([])).toEqual([])
  expect(gapsOf([3, 4, 5])).toEqual([])
  expect(gapsOf([3, 4, 7, 9])).toEqual([
    [5, 6],
    [8, 8],
  ])
  expect(gapsOf([3, 4, 7, 9], [5, 6, 8])).toEqual([])
  expect(gapsOf([3, 4], [5], 7)).toEqual([[6, 7]])
  expect(gapsOf([3, 4], [5], 5)).toEqual([])
})

test('commits that were rebuilt come in any order, and repeat', () => {
  expect(gapsOf([7, 8, 3, 4, 4, 5, 10, 3])).toEqual([
    [6, 6],
    [9, 9],
  ])
})
