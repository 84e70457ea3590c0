import { expect, test } from 'vitest'
import { type Clock, systemClock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import { ClientErrorLog } from './client-error-log.ts'

function started() {
  let now = 0
  const lines: Record<string, unknown>[] = []
  const clock: Clock = { ...systemClock, now: () => now, monotonic: () => now }
  const logger = { warn: (line: Record<string, unknown>) => lines.push(line) } as unknown as Logger
  const pass = (ms: number) => {
    now += ms
  }
  return { log: new ClientErrorLog({ clock, logger }), lines, pass }
}
const client = { address: '192.0.2.7', clientId: 'sensor-7', username: 'anybody' }

test('logs the first error of each reason with the client, and counts the others of that minute', () => {
  const { log, lines, pass } = started()
  log.add('bad_credentials', 'the password is not a valid API key', client)
  for (let count = 0; count < 1_000; count += 1) log.add('bad_credentials', 'again', client)
  log.add('quota_exceeded', 'full', { ...client, clientId: undefined })
  pass(59_999)
  log.add('bad_credentials', 'again', client)
  expect(lines).toEqual([
    { reason: 'bad_credentials', why: 'the password is not a valid API key', ...client },
    { reason: 'quota_exceeded', why: 'full', ...client, clientId: undefined },
  ])
  pass(1)
  log.add('bad_credentials', 'later', client)
  expect(lines[2]).toMatchObject({ why: 'later', suppressed: 1_001 })
})

test('never logs an API key, whichever field it is in', () => {
  const { log, lines } = started()
  const key = `ing_live_${'a'.repeat(32)}`
  log.add('not_authorized', `region loc has no endpoint ${key}`, { address: undefined, clientId: key, username: `x${key}` })
  expect(JSON.stringify(lines)).not.toContain('aaa')
  expect(lines[0]).toMatchObject({ username: 'xing_live_[redacted]' })
})

test('keeps lines short even if a client sends long texts', () => {
  const { log, lines } = started()
  log.add('client_id_not_valid', 'too long', { ...client, clientId: 'x'.repeat(16_000) })
  expect(lines[0]).toMatchObject({ clientId: 'x'.repeat(512) })
})

test('does not log actions of the operator or silent clients', () => {
  const { log, lines } = started()
  for (const reason of ['server_shutting_down', 'administrative_action', 'keep_alive_timeout'] as const)
    log.add(reason, 'x', client)
  expect(lines).toEqual([])
})
