import { expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { until } from '../../test/support/until.ts'
import { Heartbeat } from './heartbeat.ts'

test('a heartbeat that hangs is followed by another one at once, and by a third before the node counts as silent', async () => {
  let sent = 0
  const sendHeartbeat = (_: unknown, signal: AbortSignal) => {
    sent += 1
    if (sent > 2) return Promise.resolve()
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
  const message = () => ({ node_id: newId() }) as never
  const clock = new ManualClock()
  const heartbeat = new Heartbeat({ control: { sendHeartbeat }, message, clock, logger: createLogger('test', 'silent') })
  await heartbeat.start()
  for (const next of [2, 3]) {
    clock.advance(1_499)
    expect(sent).toBe(next - 1)
    clock.advance(1)
    await until('another heartbeat to be sent', () => sent === next)
  }
  await heartbeat.stop()
})
