import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { dataPaths } from '#config/data-paths.ts'
import { countFences } from '#copies/fences.ts'
import { putWriterState } from '#copies/writer-state.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { ControlError } from '#node/control-client.ts'
import { CopyingNode } from '../../../test/support/copying-node.ts'
import { FaultyStores } from '../../../test/support/faulty-stores.ts'
import { lookBeforePut } from '../../../test/support/lying-stores.ts'
import { restoreCopies } from './restore-copies.ts'

const { signal } = new AbortController()

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-restore-copies-'))
})
afterEach(() => rm(directory, { recursive: true, maxRetries: 5 }))

/** A lost node, whose store looks before it puts under a condition, and not while it puts. */
async function furnished() {
  const node = new CopyingNode(new FaultyStores(join(directory, 'copies')))
  const { store, folder } = node
  await putWriterState(store, folder, { number: 0, state: { fences: 0, below: {} } }, signal)
  const lie = () => lookBeforePut(store)
  let given = 0
  const control = {
    async takeOver() {
      given += 1
    },
  }
  let refusal: Error | undefined
  const asLost = async () => ({
    async findCommits() {
      if (refusal !== undefined) throw refusal
      return { commits: [], may_lack: false }
    },
  })
  const replace = () => {
    refusal = new ControlError(401, 'refused', { detail: 'the credential was replaced', fence: 'node_released' })
  }
  const restore = (isByItself: boolean) =>
    restoreCopies({
      ...{ ...system, nodeId: node.id, by: 'another', control, asLost, place: { store, folder }, isByItself, stopping: signal },
      ...{ paths: dataPaths(join(directory, 'data')), logger: createLogger('test', 'silent') },
    })
  const fences = () => countFences(store, folder, 0, signal)
  return { lie, restore, replace, fences, given: () => given }
}

test('by itself, no node is taken over whose copy store lets several writers have one name', async () => {
  const { lie, restore, given } = await furnished()
  lie()
  await expect(restore(true)).rejects.toThrow(
    /^the copy store is not safe for a takeover by itself \(of several such puts at once one is taken: \d of 8 .*: make sure that the lost machine is off, then run inlet node --adopt-copy /,
  )
  expect(given()).toBe(0)
})

test('a person may take it over', async () => {
  const { lie, restore, given } = await furnished()
  lie()
  expect([await restore(false), given()]).toMatchObject([{ objects: 0 }, 1])
})

test('by itself, a node with an honest copy store is taken over', async () => {
  const { restore, given } = await furnished()
  expect([await restore(true), given()]).toMatchObject([{ objects: 0 }, 1])
})

test('a node that another machine has got meanwhile is not fenced', async () => {
  const { restore, replace, fences } = await furnished()
  replace()
  await expect(restore(false)).rejects.toThrow('the credential was replaced')
  expect(await fences()).toBe(0)
})
