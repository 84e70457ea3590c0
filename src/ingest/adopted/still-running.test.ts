import { expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { ControlError } from '#node/control-client.ts'
import { hurriedClock } from '../../../test/support/hurried-clock.ts'
import { refuseWhileRunning } from './still-running.ts'

/** Returns after how many seconds it was adopted. */
async function adopt(ask: (elapsedSeconds: number) => number | null): Promise<number> {
  const clock = hurriedClock()
  const logger = createLogger('ingest', 'silent')
  await refuseWhileRunning('a', {
    ask: async () => ask(clock.monotonic() / 1000),
    clock,
    logger,
    stopping: new AbortController().signal,
  })
  return clock.monotonic() / 1000
}

test('a node that has just ended is waited for', async () => {
  expect(await adopt((elapsed) => 1 + elapsed)).toBe(7)
})

test('a node that runs is not adopted', async () => {
  await expect(adopt(() => 1)).rejects.toThrow(
    'node a still runs: control received a heartbeat of it 1 s ago. Stop it on the other machine',
  )
})

test.each([
  ['the node is silent', () => 8],
  ['the node never sent a heartbeat', () => null],
  ...[0, 401, 404, 503].map((status) => [
    `control returns ${status}`,
    () => {
      throw new ControlError(status, 'failed')
    },
  ]),
] as [string, () => number | null][])('nothing is waited for if %s', async (_, ask) => {
  expect(await adopt(ask)).toBe(0)
})
