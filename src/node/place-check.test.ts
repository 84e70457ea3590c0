import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import type { Fence } from '#errors.ts'
import { systemFiles as files } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { until } from '../../test/support/until.ts'
import { ControlError } from './control-client.ts'
import { NodeFence } from './node-fence.ts'
import { PlaceCheck } from './place-check.ts'

const logger = createLogger('test', 'silent')
const cleanUps: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
})

/** The check of a node that control has accepted, and the fence of its other process. `answers` are those of control, the last of which stays. */
async function aCheck(...answers: (() => Promise<void>)[]) {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-place-'))
  const path = join(directory, 'fence')
  const [fence, other] = [await NodeFence.open({ path, files, logger }), await NodeFence.open({ path, files, logger })]
  await fence.accepted()
  const clock = new ManualClock()
  const calls = { asked: 0, refused: 0 }
  const check = new PlaceCheck({
    ...{ fence, path, files, clock, logger },
    async ask() {
      const answer = answers[Math.min(calls.asked, answers.length - 1)]
      calls.asked += 1
      await answer?.()
    },
    onRefused: () => {
      calls.refused += 1
    },
  })
  await check.start()
  cleanUps.push(
    () => check.stop(),
    () => rm(directory, { recursive: true }),
  )
  /** Lets time pass until the check is over. Returns how much it was. */
  const end = async () => {
    const startedAt = clock.monotonic()
    await until('the end of the check', () => {
      clock.advance(100)
      return check.pending() === undefined
    })
    return clock.monotonic() - startedAt
  }
  return { check, clock, fence, other, calls, end }
}

const confirming = async () => undefined
const away = async () => {
  throw new ControlError(0, 'away')
}
const refusing = (fence?: Fence) => async () => {
  throw new ControlError(401, 'refused', { fence })
}

test('nothing is asked while the process runs', async () => {
  const { check, clock, calls } = await aCheck()
  for (let second = 0; second < 60; second += 1) {
    clock.advance(1_000)
    expect(check.pending()).toBeUndefined()
  }
  clock.jump(2_000)
  expect(check.pending()).toBeUndefined()
  clock.jump(-60_000)
  expect(check.pending()).toBeUndefined()
  expect(calls.asked).toBe(0)
})

test('after a pause control is asked until it has answered', async () => {
  const { check, clock, calls, fence, end } = await aCheck(away, confirming)
  clock.jump(3_000)
  const pending = check.pending()
  expect(pending).toBeDefined()
  expect(check.pending()).toBe(pending)
  await end()
  expect([fence.reason, calls]).toEqual([undefined, { asked: 2, refused: 0 }])
})

test('the node is fenced if control says that it was removed', async () => {
  const { check, clock, fence } = await aCheck(refusing('node_removed'))
  clock.jump(3_000)
  await check.pending()
  expect(fence.reason).toContain('an operator removed this node')
  clock.jump(3_000)
  expect(check.pending()).toBeUndefined()
})

test.each([undefined, 'node_revoked'] as const)('the registration decides what %s means', async (reason) => {
  const { check, clock, fence, calls, end } = await aCheck(refusing(reason), confirming)
  clock.jump(3_000)
  expect(check.pending()).toBeDefined()
  await end()
  expect([fence.reason, calls]).toEqual([undefined, { asked: 2, refused: 1 }])
})

test('without control, acknowledgements go on after a bounded time', async () => {
  const { check, clock, fence, end } = await aCheck(away)
  clock.jump(3_000)
  expect(check.pending()).toBeDefined()
  expect(await end()).toBeLessThanOrEqual(6_000)
  expect(fence.reason).toBeUndefined()
})

test.each([away, refusing('node_adopted')])('a fence that the other process stores is noticed at once', async (answer) => {
  const { check, fence, other, end } = await aCheck(answer)
  await other.refused('node_adopted')
  await until('the check', () => check.pending() !== undefined || fence.reason !== undefined)
  await end()
  expect(fence.reason).toContain('another machine adopted the log')
})

test('what control said to the other process earlier does not count', async () => {
  const { check, calls, fence, other, end } = await aCheck(confirming)
  await other.refused('node_removed')
  await until('the question', () => calls.asked > 0)
  await end()
  expect([fence.reason, check.pending()]).toEqual([undefined, undefined])
})
