import { expect, test } from 'vitest'
import { commitId } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { findDeliveredBy } from './find-delivered.ts'

const node = newId()
const segments = [1, 2].map((seq) => ({ logName: newId(), incarnation: 'abcdefghij', seq }))
const { signal } = new AbortController()

function findWith(seqs: readonly number[], may_lack?: boolean, contact = { mayLackChanges: false }) {
  const commits = seqs.map((seq) => ({ id: commitId(node, 'abcdefghij', seq), records: 1 }))
  const answer = { commits, may_lack, reported_at: undefined as number | null | undefined }
  const control = { findCommits: async () => answer }
  return Object.assign(findDeliveredBy({ control, contact, nodeId: node }), { answer })
}

test('finds what control has recorded', async () => {
  expect(await findWith([1])(segments, signal)).toEqual([segments[0]])
  expect(await findWith([1], false)(segments, signal)).toEqual([segments[0]])
  expect(await findWith([1, 2], true)(segments, signal)).toEqual(segments)
})

test('does not say that a segment was not delivered while the database may lack its commit', async () => {
  await expect(findWith([1], true)(segments, signal)).rejects.toThrow('run inlet commits rebuild')
})

test('does not ask while this process refuses the database or has not reached it', async () => {
  const contact = { mayLackChanges: true }
  const find = findWith([1], false, contact)
  await expect(find(segments, signal)).rejects.toThrow('does not follow')
  contact.mayLackChanges = false
  expect(await find(segments, signal)).toEqual([segments[0]])
})

test('waits until the delivery process has reported: only then the database knows whether it went back', async () => {
  const find = findWith([1], false)
  for (const reported_at of [null, null, 1_000]) {
    find.answer.reported_at = reported_at
    const found = find(segments, signal)
    if (reported_at === null) await expect(found).rejects.toThrow('has not reported')
    else expect(await found).toEqual([segments[0]])
  }
})
