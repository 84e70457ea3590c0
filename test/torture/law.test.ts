import { describe, expect, test } from 'vitest'
import { aCommit } from '../support/commits.ts'
import type { Delivered } from './bucket-contents.ts'
import { judge, type Observed, type ObservedEndpoint } from './law.ts'
import { Ledger, type Outcome, recordsIn, recordText } from './ledger.ts'

const viewId = '44444444-4444-4444-8444-444444444444'
const endpointId = '22222222-2222-4222-8222-222222222222'

/** A segment that was delivered with a view: the last record is a dead letter. */
function aSegment(seq: number, records: readonly string[]): Delivered {
  const counts = { processed: records.length, accepted: records.length - 1, dropped: 0, dlq: 1, failed: 0 }
  const view = { view_id: viewId, view_name: 'records', view_version: 1, ...counts, cast_nulls: 0, errors: {}, last_error: null }
  const file = { key: `parquet/${seq}`, bytes: 10, rows: records.length, sha256: '' }
  return {
    marker: aCommit({ seq, records: records.length, views: [view], artifacts: { parquet: file } }),
    records,
    views: [{ name: 'records v1', accepted: records.slice(0, -1), rejected: records.slice(-1) }],
    problems: [],
  }
}

function anEndpoint(delivered: readonly Delivered[], change: Partial<ObservedEndpoint> = {}): ObservedEndpoint {
  const sum = (of: (counts: { accepted: number; processed: number; dlq: number }) => number) =>
    delivered.reduce((total, { marker }) => total + marker.views.reduce((all, view) => all + of(view), 0), 0)
  return {
    id: endpointId,
    delivered,
    commits: delivered.map(({ marker }) => marker),
    counters: new Map([
      [
        viewId,
        { processed: sum(({ processed }) => processed), accepted: sum(({ accepted }) => accepted), dlq: sum(({ dlq }) => dlq) },
      ],
    ]),
    status: 'active',
    statusReasons: [],
    isDeleted: false,
    hasDirectory: true,
    ...change,
  }
}

/** Two requests of two records, each acknowledged and committed. */
function aRound(change: Partial<Observed> = {}, attempts: readonly (readonly Outcome[])[] = []): Observed {
  const ledger = new Ledger()
  for (const index of [0, 1]) ledger.create(endpointId, 2).attempts.push(...(attempts[index] ?? ['acknowledged']))
  const endpoints = [anEndpoint([aSegment(0, ['0/0', '0/1']), aSegment(1, ['1/0', '1/1'])])]
  return { sent: ledger.sent, damaged: new Map(), endpoints, leftovers: [], troubles: [], ...change }
}

const lawsOf = (observed: Observed) => judge(observed).findings.map(({ law }) => law)
const withSegments = (...segments: readonly Delivered[]): Partial<Observed> => ({ endpoints: [anEndpoint(segments)] })
const [first, second] = [aSegment(0, ['0/0', '0/1']), aSegment(1, ['1/0', '1/1'])]

describe('the law', () => {
  test('is kept by a round without loss', () => {
    expect(judge(aRound())).toEqual({ findings: [], committedRecords: 4, deadLetters: 2, lostToDamage: [], listedRecords: 0 })
  })

  test('finds a lost request, and a lost record', () => {
    expect(lawsOf(aRound(withSegments(first)))).toEqual(['lost'])
    expect(lawsOf(aRound(withSegments(first, aSegment(1, ['1/1']))))).toEqual(['lost'])
  })

  test('finds a doubled record, in one segment and in two', () => {
    expect(lawsOf(aRound(withSegments(first, second, aSegment(2, ['1/0', '1/1']))))).toEqual(['doubled'])
    expect(lawsOf(aRound(withSegments(first, aSegment(1, ['1/0', '1/0', '1/1']))))).toEqual(['doubled'])
  })

  test('finds a stuck record', () => {
    const stuck = { path: 'wal/3.wal', log: endpointId, reason: undefined, records: new Set(['1/0', '1/1']) }
    expect(lawsOf(aRound({ ...withSegments(first), leftovers: [stuck] }))).toEqual(['stranded'])
    expect(judge(aRound({ ...withSegments(first), leftovers: [{ ...stuck, reason: 'parked' }] }))).toMatchObject({
      findings: [],
      listedRecords: 2,
    })
  })

  test('finds what nobody sent, what was refused, and what is in the bucket of another endpoint', () => {
    expect(lawsOf(aRound(withSegments(first, second, aSegment(2, ['7/0']))))).toEqual(['invented'])
    expect(lawsOf(aRound({}, [['refused']]))).toEqual(['doubled'])
    const other = anEndpoint([second], { id: '55555555-5555-4555-8555-555555555555' })
    expect(lawsOf(aRound({ endpoints: [anEndpoint([first]), other] }))).toEqual(['invented'])
  })

  test('allows as many copies as attempts whose end is unknown', () => {
    const twice = withSegments(first, second, aSegment(2, ['1/0', '1/1']))
    expect(lawsOf(aRound(twice, [['acknowledged'], ['unknown', 'acknowledged']]))).toEqual([])
    expect(lawsOf(aRound(withSegments(first), [['acknowledged'], ['unknown']]))).toEqual([])
    expect(lawsOf(aRound(twice, [['acknowledged'], ['refused', 'acknowledged']]))).toEqual(['doubled'])
    expect(lawsOf(aRound(withSegments(first, second), [['acknowledged'], ['acknowledged', 'acknowledged']]))).toEqual(['lost'])
  })

  test('finds half a request', () => {
    expect(lawsOf(aRound(withSegments(first, aSegment(1, ['1/1'])), [['acknowledged'], ['unknown']]))).toEqual(['torn'])
  })

  test('allows what the harness damaged to be missing, and names it, but not to be doubled', () => {
    const damaged = new Map([[1, { reason: 'bit flip', isSealed: false }]])
    expect(judge(aRound({ ...withSegments(first), damaged }))).toMatchObject({ findings: [], lostToDamage: ['1/0', '1/1'] })
    expect(lawsOf(aRound({ ...withSegments(first, second, aSegment(2, ['1/0', '1/1'])), damaged }))).toEqual(['doubled'])
  })

  test('finds damage of a sealed segment that is neither counted nor listed', () => {
    const damaged = new Map([[1, { reason: 'bit flip', isSealed: true }]])
    expect(lawsOf(aRound({ ...withSegments(first), damaged }))).toEqual(['uncounted'])
    const counted = { ...first, marker: { ...first.marker, records_damaged: 2 } }
    expect(lawsOf(aRound({ ...withSegments(counted), damaged }))).toEqual([])
    const original = { path: 'wal/1.quarantine', log: endpointId, reason: 'quarantined', records: new Set<string>() }
    expect(lawsOf(aRound({ ...withSegments(first), damaged, leftovers: [original] }))).toEqual([])
  })

  test('allows a listed segment to hold a drain and to degrade an endpoint that says so', () => {
    const statusReasons = ['1 quarantined']
    const draining = anEndpoint([first, second], { status: 'draining', isDeleted: true, statusReasons })
    const degraded = anEndpoint([first, second], { status: 'degraded', statusReasons })
    const original = { path: 'wal/1.quarantine', log: endpointId, reason: 'quarantined', records: new Set<string>() }
    for (const held of [draining, degraded]) {
      expect(lawsOf(aRound({ endpoints: [held], leftovers: [original] }))).toEqual([])
      expect(lawsOf(aRound({ endpoints: [{ ...held, statusReasons: [] }], leftovers: [original] }))).toEqual(['endpoint'])
    }
  })

  test('finds a commit that differs from its marker, or lacks it', () => {
    const changed = { ...aCommit({ seq: 1 }), artifacts: { parquet: { key: 'elsewhere', bytes: 10 } } }
    const known = anEndpoint([first, second]).commits ?? []
    for (const commits of [
      known.slice(1),
      [...known, { ...changed, id: 'x' }],
      known.map((commit, at) => (at === 1 ? changed : commit)),
      known.map((commit) => ({ ...commit, records: commit.records + 1 })),
    ]) {
      expect(lawsOf(aRound({ endpoints: [anEndpoint([first, second], { commits })] }))).toContain('endpoint')
    }
  })

  test('finds a second commit, and a second marker, for one segment', () => {
    const commits = anEndpoint([first, second]).commits ?? []
    const twice = anEndpoint([first, second], { commits: [...commits, ...commits.slice(1)] })
    expect(lawsOf(aRound({ endpoints: [twice] }))).toEqual(['endpoint'])
    const again = { ...second, records: [], views: [], marker: { ...second.marker, records: 0, views: [] } }
    const { findings } = judge(aRound({ endpoints: [anEndpoint([first, second, again])] }))
    expect(findings.map(({ text }) => text)).toContainEqual(expect.stringContaining('several markers for one segment'))
  })

  test('finds each row that is missing from what was delivered', () => {
    for (const missing of first.records) {
      const records = first.records.filter((name) => name !== missing)
      expect(lawsOf(aRound(withSegments({ ...first, records }, second)))).toContain('lost')
    }
    expect(lawsOf(aRound(withSegments({ ...first, problems: ['parquet/0: 1 rows instead of 2'] }, second)))).toEqual(['endpoint'])
  })

  test('finds counters and files that do not add up', () => {
    const counters = new Map([[viewId, { processed: 5, accepted: 2, dlq: 2 }]])
    expect(lawsOf(aRound({ endpoints: [anEndpoint([first, second], { counters })] }))).toEqual(['endpoint'])
    const withoutDeadLetter = { ...second, views: [{ name: 'records v1', accepted: ['1/0'], rejected: [] }] }
    expect(lawsOf(aRound(withSegments(first, withoutDeadLetter)))).toContain('endpoint')
    expect(lawsOf(aRound(withSegments(first, { ...second, problems: ['x: is missing'] })))).toEqual(['endpoint'])
  })

  test.each<[string, Partial<ObservedEndpoint>]>([
    ['degraded', { status: 'degraded' }],
    ['still draining', { status: 'draining', isDeleted: true }],
    ['gone from the API only', { status: undefined, isDeleted: true }],
    ['gone though nobody deleted it', { status: undefined }],
  ])('finds an endpoint that is %s', (_, change) => {
    expect(lawsOf(aRound({ endpoints: [anEndpoint([first, second], change)] }))).toEqual(['endpoint'])
  })

  test('finds a process that ended by itself', () => {
    expect(lawsOf(aRound({ troubles: ['ingest ended by itself (code 70)'] }))).toEqual(['processes'])
  })
})

test('the ledger notes an acknowledgement only when it has arrived', async () => {
  const ledger = new Ledger()
  const sent = ledger.create(endpointId, 3)
  const response = Promise.withResolvers<'acknowledged'>()
  const attempt = ledger.attempt(sent, () => response.promise)
  expect({ attempts: [...sent.attempts], records: ledger.acknowledgedRecords }).toEqual({ attempts: ['pending'], records: 0 })
  response.resolve('acknowledged')
  await attempt
  await ledger.attempt(sent, () => Promise.reject(new Error('connection reset')))
  expect({ attempts: sent.attempts, records: ledger.acknowledgedRecords }).toEqual({
    attempts: ['acknowledged', 'unknown'],
    records: 3,
  })
})

test('records are found in any text', () => {
  const text = `frame ${recordText(12, 0, 'xx')}\n${recordText(12, 1, '')}\0\0${recordText(13, 0, 'x')}`
  expect([...recordsIn(text)].map(({ id, index }) => `${id}/${index}`)).toEqual(['12/0', '12/1', '13/0'])
})
