import { afterEach, expect, test, vi } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { Heartbeat } from './heartbeat.ts'

afterEach(() => vi.restoreAllMocks())

test('a heartbeat that hangs is followed by another one at once', async () => {
  const late = new AbortController()
  vi.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(late.signal)
  const second = Promise.withResolvers<void>()
  let sent = 0
  const sendHeartbeat = (_: unknown, signal: AbortSignal) => {
    sent += 1
    if (sent > 1) return Promise.resolve(second.resolve())
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
  const message = () => ({ node_id: newId() }) as never
  const heartbeat = new Heartbeat({
    control: { sendHeartbeat },
    message,
    clock: systemClock,
    logger: createLogger('test', 'silent'),
  })
  await heartbeat.start()
  const from = performance.now()
  late.abort()
  await second.promise
  expect(performance.now() - from).toBeLessThan(1_900)
  await heartbeat.stop()
})
