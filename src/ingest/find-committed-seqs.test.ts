import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { findCommittedSeqsBy } from './find-committed-seqs.ts'

test('asks control about this node, but not while this process refuses its database or has not reached it', async () => {
  const { signal } = new AbortController()
  const nodeId = newId()
  const contact = { mayLackChanges: true }
  const control = { fetchCommittedSeqs: async (id: string) => ({ seqs: { [id]: 7 } }) }
  const find = findCommittedSeqsBy({ control, contact, nodeId })
  await expect(find(signal)).rejects.toThrow('does not follow')
  contact.mayLackChanges = false
  expect(await find(signal)).toEqual({ [nodeId]: 7 })
})
