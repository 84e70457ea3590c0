import { expect, test } from 'vitest'
import type { EndpointStatus } from '#model/endpoint.ts'
import { awaitTruth, Told } from './truth.ts'

test.each<[readonly EndpointStatus[], boolean]>([
  [['active', 'active', 'degraded', 'failed'], true],
  [['degraded', 'failed', 'failed'], true],
  [['failed'], true],
  [['active', 'failed'], false],
  [['active', 'degraded', 'active', 'degraded'], false],
  [['degraded', 'failed', 'degraded'], false],
  [['active', 'deploying'], false],
])('%j on the way to the truth: allowed is %s', (statuses, isAllowed) => {
  const told = new Told()
  for (const status of statuses) told.note('control-1 about a', status)
  told.note('control-2 about a', 'active')
  expect(told.findDetours().length === 0).toBe(isAllowed)
})

test('what is still wrong at the end of the time is returned', async () => {
  let looks = 0
  const find = async () => {
    looks += 1
    return looks < 2 ? ['wrong'] : []
  }
  expect((await awaitTruth(find)).wrong).toEqual([])
  expect((await awaitTruth(async () => ['wrong'], 1)).wrong).toEqual(['wrong'])
})
