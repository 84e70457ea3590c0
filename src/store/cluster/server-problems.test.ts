import { expect, test } from 'vitest'
import type { SurveyedServer } from '../engines/postgres.ts'
import { listProblems } from './server-problems.ts'

const synchronous = { standby_names: 'ANY 1 (*)', commit: 'on', standbys: 1 }
const server = (host: string, more: Partial<SurveyedServer>): SurveyedServer => ({
  ...{ host, state: 'writable', isUsed: false, synchronous },
  ...(more.state === 'standby' || more.state === 'unreachable'
    ? {}
    : { standing: { system: 'one', timeline: 2, generation: 0 } }),
  ...more,
})
const used = server('db-2:5432', { isUsed: true })
const standby = server('db-1:5432', { state: 'standby' })
const older = server('db-1:5432', { state: 'older', standing: { system: 'one', timeline: 1, generation: 0 } })

test('a primary with a synchronous standby is well', () => {
  expect(listProblems([used, standby])).toEqual([])
  expect(listProblems([used, server('db-3:5432', { state: 'unreachable' })])).toEqual([])
})

test.each([
  ['ANY 1 (*)', 0, 1],
  ['db1', 0, 1],
  ['"db 2 (b)", db1', 0, 1],
  ['ANY 2 (*)', 1, 2],
  ['first 2 (a, b, c)', 1, 2],
  ['2 (a, b)', 0, 2],
])('synchronous_standby_names = %s, and %i connected: nothing is confirmed', (standby_names, standbys, needed) => {
  const waiting = (connected: number | undefined) =>
    listProblems([{ ...used, synchronous: { ...synchronous, standby_names, standbys: connected } }])
  const [problem, ...others] = waiting(standbys)
  expect(others).toEqual([])
  expect(problem).toMatchObject({
    ...{ kind: 'no_standby', level: 'error' },
    message: `db-2:5432 confirms no change: ${standbys} of ${needed} synchronous standbys are connected`,
    remedy: expect.stringContaining(`ALTER SYSTEM SET synchronous_standby_names = ''`),
  })
  expect(problem?.note).not.toContain('db-')
  expect(waiting(needed)).toEqual([])
  // A server that forbids to ask.
  expect(waiting(undefined)).toEqual([])
})

test('an older one that takes writes: which, and what to do; the note for everybody names no host', () => {
  const [problem, ...others] = listProblems([older, used])
  expect(others).toEqual([])
  expect(problem).toMatchObject({
    kind: 'two_writable',
    level: 'error',
    message: 'db-1:5432 (timeline 1) takes writes, and is older than db-2:5432 (timeline 2): control uses only db-2:5432',
    remedy: 'stop db-1:5432, and make it a standby of db-2:5432 (pg_rewind, or a new copy)',
  })
  expect(problem?.note).not.toContain('db-')
})

test('an older one: only an acceptance that it does not know is named as the reason', () => {
  const messageOf = (before: number, now: number) => {
    const returned = { ...older, standing: { system: 'one', timeline: 1, generation: before } }
    const accepted = { ...used, standing: { system: 'one', timeline: 2, generation: now } }
    return listProblems([returned, accepted])[0]?.message
  }
  expect(messageOf(0, 5_000)).toContain('is older than db-2:5432 (timeline 2), which was accepted since: control uses')
  expect(messageOf(5_000, 5_000)).toContain('is older than db-2:5432 (timeline 2): control uses')
})

test('two of one timeline: an operator has to know which is right', () => {
  const [problem] = listProblems([server('db-1:5432', {}), used])
  expect(problem?.message).toBe(
    'db-1:5432 (timeline 2) and db-2:5432 (timeline 2) take writes, and which of them is right is not known: this process uses db-2:5432',
  )
})

test.each([
  [{ standby_names: '', commit: 'on' }, 'synchronous_standby_names is empty'],
  [{ standby_names: 'db1', commit: 'off' }, 'synchronous_commit is off'],
  [{ standby_names: 'db1', commit: 'local' }, 'synchronous_commit is local'],
])('settings %o: a failover may lose changes', (settings, reason) => {
  const primary = { ...used, synchronous: { ...settings, standbys: 0 } }
  expect(listProblems([primary, standby])).toMatchObject([
    { kind: 'asynchronous', level: 'warn', note: expect.stringContaining(reason) },
  ])
  // With one server there is no failover.
  expect(listProblems([primary])).toEqual([])
})

test('a server that tells no timeline is named', () => {
  const { standing: _, ...silent } = used
  expect(listProblems([silent, standby])).toMatchObject([{ kind: 'no_timeline', level: 'info' }])
})
