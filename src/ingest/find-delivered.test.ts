import { expect, test } from 'vitest'
import { commitId } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { findDeliveredBy } from './find-delivered.ts'

const node = newId()
const segments = [1, 2].map((seq) => ({ logName: newId(), incarnation: 'abcdefghij', seq }))
const { signal } = new AbortController()

function findWith(seqs: readonly number[], may_lack?: boolean) {
  const commits = seqs.map((seq) => ({ id: commitId(node, 'abcdefghij', seq), records: 1 }))
  return findDeliveredBy({ findCommits: async () => ({ commits, may_lack }) }, node)
}

test('finds what control has recorded', async () => {
  expect(await findWith([1])(segments, signal)).toEqual([segments[0]])
  expect(await findWith([1], false)(segments, signal)).toEqual([segments[0]])
  expect(await findWith([1, 2], true)(segments, signal)).toEqual(segments)
})

test('does not say that a segment was not delivered while the database may lack its commit', async () => {
  await expect(findWith([1], true)(segments, signal)).rejects.toThrow('run inlet commits rebuild')
})
