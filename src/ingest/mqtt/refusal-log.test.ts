import { expect, test } from 'vitest'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import { RefusalLog } from './refusal-log.ts'

function started() {
  let now = 0
  const lines: Record<string, unknown>[] = []
  const clock: Clock = { now: () => now, monotonic: () => now, setTimer: () => () => undefined }
  const logger = { warn: (line: Record<string, unknown>) => lines.push(line) } as unknown as Logger
  const pass = (ms: number) => {
    now += ms
  }
  return { log: new RefusalLog({ clock, logger }), lines, pass }
}
const client = { address: '192.0.2.7', clientId: 'sensor-7', username: 'anybody' }

test('the first of a reason is said with all that is known of the client; the rest of the minute is counted', () => {
  const { log, lines, pass } = started()
  log.refused('bad_credentials', 'the password is no valid API key', client)
  for (let count = 0; count < 1_000; count += 1) log.refused('bad_credentials', 'again', client)
  log.refused('quota_exceeded', 'full', { ...client, clientId: undefined })
  pass(59_999)
  log.refused('bad_credentials', 'again', client)
  expect(lines).toEqual([
    { reason: 'bad_credentials', why: 'the password is no valid API key', ...client, moreSinceLastLine: 0 },
    { reason: 'quota_exceeded', why: 'full', ...client, clientId: undefined, moreSinceLastLine: 0 },
  ])
  pass(1)
  log.refused('bad_credentials', 'later', client)
  expect(lines[2]).toMatchObject({ why: 'later', moreSinceLastLine: 1_001 })
})

test('a key never reaches it, wherever it stands', () => {
  const { log, lines } = started()
  const key = `ing_live_${'a'.repeat(32)}`
  log.refused('not_authorized', `region loc has no endpoint ${key}`, { address: undefined, clientId: key, username: `x${key}` })
  expect(JSON.stringify(lines)).not.toContain('aaa')
  expect(lines[0]).toMatchObject({ username: 'xing_live_[redacted]' })
})

test('what a client sends does not make it long', () => {
  const { log, lines } = started()
  log.refused('client_id_not_valid', 'too long', { ...client, clientId: 'x'.repeat(16_000) })
  expect(lines[0]).toMatchObject({ clientId: 'x'.repeat(512) })
})

test('what an operator does, and clients that fall silent, are no news', () => {
  const { log, lines } = started()
  for (const reason of ['server_shutting_down', 'administrative_action', 'keep_alive_timeout'] as const)
    log.refused(reason, 'x', client)
  expect(lines).toEqual([])
})
