import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { patienceMs, waitFor } from './patience.ts'

/** Waits for something that takes this long, and returns how it ended. */
async function wait(readyAfterMs: number): Promise<string> {
  const clock = new ManualClock()
  let result = ''
  const check = async () => (clock.monotonic() < readyAfterMs ? 'not yet' : undefined)
  const done = waitFor('the server', check, clock).then(
    () => 'done',
    (error: unknown) => String(error),
  )
  void done.then((text) => {
    result = text
  })
  while (result === '') {
    await setImmediate()
    clock.advance(10_000)
  }
  return result
}

test('a step may take minutes on a busy machine', async () => {
  expect(await wait(300_000)).toBe('done')
})

test('a step that never ends is named, with what is missing', async () => {
  expect(await wait(2 * patienceMs)).toBe('Error: gave up waiting for the server after 10 minutes: not yet')
})
