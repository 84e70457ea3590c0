import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ObjectStore } from '#objects/object-store.ts'
import { copyBucket } from '../../test/support/copy-bucket.ts'
import { FaultyStores } from '../../test/support/faulty-stores.ts'
import { findWriterState, putWriterState } from './writer-state.ts'

const { signal } = new AbortController()
const folder = 'copies/node/'

let directory = ''
let store: ObjectStore
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-writer-state-'))
  store = new FaultyStores(directory).open(copyBucket)
})
afterEach(() => rm(directory, { recursive: true }))

/** A store whose listings are older than all that was put. */
function withOldListings(): ObjectStore {
  async function* list() {}
  return Object.assign(Object.create(store) as ObjectStore, { list })
}

test('of a young node it is found although a listing is older', async () => {
  const states = [0, 1, 2].map((fences) => ({ fences, below: { abcdefghij: fences } }))
  for (const [number, state] of states.entries()) await putWriterState(store, folder, { number, state }, signal)
  expect(await findWriterState(withOldListings(), folder, signal)).toMatchObject({ number: 2, state: states[2] })
})

test('of a node that never copied there is none', async () => {
  expect(await findWriterState(store, folder, signal)).toBe(undefined)
})
