import { expect, test } from 'vitest'
import { systemRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import type { Heartbeat as Message } from '#model/node-protocol.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { until } from '../../test/support/until.ts'
import { Heartbeat } from './heartbeat.ts'

test('a heartbeat that hangs is followed by another one at once, and by a third before the node counts as silent', async () => {
  const orders: Message['order'][] = []
  const sendHeartbeat = ({ order }: Message, signal: AbortSignal) => {
    if (orders.push(order) > 2) return Promise.resolve()
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
  const message = () => ({ node_id: newId() }) as never
  const clock = new ManualClock()
  const heartbeat = new Heartbeat({
    control: { sendHeartbeat },
    message,
    clock,
    random: systemRandom,
    logger: createLogger('test', 'silent'),
  })
  await heartbeat.start()
  for (const next of [2, 3]) {
    clock.advance(1_499)
    expect(orders.length).toBe(next - 1)
    clock.advance(1)
    await until('another heartbeat to be sent', () => orders.length === next)
  }
  const run = orders[0]?.run
  expect(orders).toEqual([1, 2, 3].map((number) => ({ run, number })))
  await heartbeat.stop()
})
