import { expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { until } from '../../test/support/until.ts'
import { Heartbeat } from './heartbeat.ts'

test('a heartbeat that hangs is followed by another one at once', async () => {
  let sent = 0
  const sendHeartbeat = (_: unknown, signal: AbortSignal) => {
    sent += 1
    if (sent > 1) return Promise.resolve()
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
  const message = () => ({ node_id: newId() }) as never
  const clock = new ManualClock()
  const heartbeat = new Heartbeat({ control: { sendHeartbeat }, message, clock, logger: createLogger('test', 'silent') })
  await heartbeat.start()
  clock.advance(2_999)
  expect(sent).toBe(1)
  clock.advance(1)
  await until('another heartbeat to be sent', () => sent === 2)
  await heartbeat.stop()
})
