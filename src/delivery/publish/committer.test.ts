import { describe, expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import { objectKey, printArtifactKind } from '#model/artifact.ts'
import { newId } from '#model/id.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import type { DeliveryRun, DeliveryTarget, SegmentFacts } from '../segments/delivery-run.ts'
import { Endpoints } from '../segments/endpoints.ts'
import type { Bucket } from './bucket.ts'
import type { CommitSink, FinishedSegment } from './commit-sink.ts'
import { Committer } from './committer.ts'
import { ArtifactsMissing, decodeMarker, MarkerMissing } from './marker.ts'
import { MarkerSeal } from './marker-seal.ts'
import { markerSink } from './marker-sink.ts'

const facts: SegmentFacts = {
  id: 'id',
  name: { endpointId: newId(), nodeId: newId(), incarnation: 'abcdefghij', seq: 7, sealedAtMicros: 0 },
  records: 3,
  recordsDamaged: 2,
  walBytes: 99,
  firstReceivedAt: isoTimestamp(new ManualClock().now() - 65_000),
  sealedAt: isoTimestamp(new ManualClock().now() - 35_000),
}
const target = {
  ...{ id: newId(), bucket: 'lake', prefix: 'p', region: 'local', role_arn: null, external_id: '' },
  ...{ encryption: 'sse-s3', kms_key_arn: null, checksums: 'standard', allowed_buckets: [] },
  ...{ path_style: false, session: 's' },
} satisfies DeliveryTarget
const parquet = { key: objectKey('p', facts.name, { type: 'parquet' }), bytes: 10, rows: 3, sha256: 'ab' }
const markerKey = objectKey('p', facts.name, { type: 'marker' })

const seal = new MarkerSeal('a key')

/** Creates a committer with a bucket of two maps, and a second sink that records its arguments. */
function furnished() {
  const calls: string[] = []
  const objects = new Map([[parquet.key, 10]])
  const markers = new Map<string, Uint8Array>()
  /** SHA-256 that the store has of objects. */
  const sums = new Map<string, string>()
  /** Whether the store acknowledges markers that it does not keep. */
  const loses = { markers: false }
  const store = {
    head: async (key: string) => {
      calls.push('check')
      const bytes = objects.get(key) ?? markers.get(key)?.length
      return bytes === undefined ? undefined : { bytes, sha256: sums.get(key) }
    },
    put: async (key: string, body: Uint8Array) => {
      calls.push('marker')
      if (!loses.markers) markers.set(key, body)
    },
    putIfAbsent: async (key: string, body: Uint8Array) => {
      if (markers.has(key)) return false
      calls.push('marker')
      if (!loses.markers) markers.set(key, body)
      return true
    },
    get: async (key: string) => markers.get(key),
  } as unknown as ObjectStore
  const recorded: FinishedSegment[] = []
  const last: CommitSink = {
    name: 'last',
    async record(finished) {
      calls.push('last')
      recorded.push(finished)
    },
  }
  const endpoints = new Endpoints()
  const bind = (destination: SnapshotEndpoint['destination']) =>
    endpoints.update({ epoch: 1, endpoints: [{ id: facts.name.endpointId, destination } as SnapshotEndpoint] })
  bind(target)
  const turn = Promise.withResolvers<void>()
  const abort = new AbortController()
  const run: DeliveryRun = {
    segment: { logName: facts.name.endpointId, incarnation: 'abcdefghij', seq: 7 },
    ...{ mayBeCommitted: false, turn: turn.promise, report: () => undefined, signal: abort.signal },
  }
  const events: unknown[] = []
  const logger = {
    notice: (fields: object, message: string) => events.push({ ...fields, message }),
    warn: () => undefined,
  } as unknown as Logger
  const committer = new Committer({
    sinks: [markerSink({ seal, logger }), last],
    seal,
    endpoints,
    clock: new ManualClock(),
    logger,
  })
  const outage = { onOver: () => undefined as unknown }
  const bucket: Bucket = {
    async request(access, send) {
      if (access === 'write') outage.onOver()
      return send(store)
    },
  }
  const destination = { target, bucket }
  const commit = () =>
    committer.commit(facts, { artifacts: { parquet }, views: [], startedAt: 0, replacesMarker: false }, destination, run)
  return {
    outage,
    sums,
    loses,
    calls,
    objects,
    markers,
    recorded,
    events,
    bind,
    turn,
    abort,
    run,
    committer,
    destination,
    commit,
  }
}

describe('the committer', () => {
  test('waits for the turn, checks the files, and calls the sinks in order', async () => {
    const { calls, markers, recorded, turn, commit } = furnished()
    const committed = commit()
    await new Promise(setImmediate)
    expect(calls).toEqual([])
    turn.resolve()
    await committed
    // Its place, too, until the store has shown that it heeds a condition.
    expect(calls).toEqual(['check', 'check', 'marker', 'check', 'last'])
    const marker = printArtifactKind({ type: 'marker' })
    expect(Object.keys(recorded[0]?.commit.artifacts ?? {})).toEqual(['parquet', marker])
    // The sinks get the same commit that a later run reads from the marker.
    expect(decodeMarker(markerKey, markers.get(markerKey) ?? new Uint8Array())).toEqual(recorded[0]?.commit)
  })

  test('logs the commit once every sink has it', async () => {
    const { events, calls, turn, commit } = furnished()
    turn.resolve()
    const committed = commit()
    expect([calls, events]).toEqual([[], []])
    await committed
    expect(events).toEqual([
      {
        message: 'segment committed',
        ...{ segment: facts.id, endpoint: facts.name.endpointId, records: 3, duration_ms: 0, views: [], is_adopted: false },
        since_sealed_ms: 35_000,
        files: ['parquet'],
      },
    ])
  })

  test('counts damaged records in the marker; a marker of an older node counts none', async () => {
    const { markers, recorded, turn, commit } = furnished()
    turn.resolve()
    await commit()
    expect(recorded[0]?.commit.records_damaged).toBe(2)
    const { records_damaged, ...older } = JSON.parse(Buffer.from(markers.get(markerKey) ?? []).toString())
    expect(records_damaged).toBe(2)
    expect(decodeMarker(markerKey, Buffer.from(JSON.stringify(older)))?.records_damaged).toBe(0)
  })

  test.each([
    ['is missing', undefined, undefined],
    ['has another size', 9, undefined],
    ['has another checksum', 10, 'cd'],
  ])('calls no sink if a file %s', async (_, bytes, sha256) => {
    const { calls, objects, sums, turn, commit } = furnished()
    turn.resolve()
    if (bytes === undefined) objects.clear()
    else objects.set(parquet.key, bytes)
    if (sha256 !== undefined) sums.set(parquet.key, sha256)
    await expect(commit()).rejects.toThrow(ArtifactsMissing)
    expect(calls).toEqual(['check'])
  })

  test('calls no further sink if the store accepts the marker, and does not have it or has an older one', async () => {
    const { calls, sums, loses, turn, commit } = furnished()
    turn.resolve()
    loses.markers = true
    await expect(commit()).rejects.toThrow(`accepted ${markerKey}, but does not have what was sent`)
    loses.markers = false
    sums.set(markerKey, 'that of an older marker')
    await expect(commit()).rejects.toThrow(MarkerMissing)
    sums.clear()
    expect(calls).not.toContain('last')
    await commit()
    expect(calls.at(-1)).toBe('last')
  })

  test('looks for the files after the wait for the end of an outage', async () => {
    const { outage, calls, objects, turn, commit } = furnished()
    outage.onOver = () => objects.clear()
    turn.resolve()
    await expect(commit()).rejects.toThrow(ArtifactsMissing)
    expect(calls).toEqual(['check'])
  })

  test('calls no sink if another destination was bound during the wait, or the run was aborted', async () => {
    const rebound = furnished()
    const first = rebound.commit()
    rebound.bind({ ...target, prefix: 'q' })
    rebound.turn.resolve()
    await expect(first).rejects.toThrow('the destination was changed')
    const stopped = furnished()
    const second = stopped.commit()
    stopped.abort.abort(new Error('stopped'))
    stopped.turn.resolve()
    await expect(second).rejects.toThrow('stopped')
    expect([...rebound.calls, ...stopped.calls]).toEqual([])
  })

  test('does not rewrite the marker of an adopted segment, and calls the other sinks', async () => {
    const { calls, recorded, events, turn, commit, committer, destination, run } = furnished()
    turn.resolve()
    await commit()
    const [found] = recorded
    if (found === undefined) throw new Error('nothing was recorded')
    await committer.commitAdopted(found.commit, facts, destination, run)
    expect(calls).toEqual(['check', 'check', 'marker', 'check', 'last', 'last'])
    expect(recorded[1]).toMatchObject({ commit: found.commit, marker: 'adopted' })
    expect(events).toMatchObject([{ is_adopted: false }, { is_adopted: true }])
  })
})
