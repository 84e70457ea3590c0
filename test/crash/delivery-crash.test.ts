/**
 * The second half of the crash table: a real delivery process dies at a named moment, and the next one continues from what it left.
 * Law: one commit per segment, every acknowledged record is committed exactly once, and nothing is left on the node.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { isThorough } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const child = resolve(import.meta.dirname, 'delivery-child.ts')
const definition = {
  columns: [{ name: 'n', type: 'INTEGER', path: '$.n', required: true }],
  filters: [{ condition: 'n % 5 != 0' }],
}

/** Remains of the crash: objects of the segment, a marker, a commit in the outbox, a commit in control. */
type Left = {
  readonly objects: boolean
  readonly marker: boolean
  readonly outbox: boolean
  readonly recorded: boolean
  readonly segment: boolean
}

/** The simulation kills delivery at every call. Without a thorough run, two moments show that real processes do the same. */
const table: readonly (readonly [moment: string, left: Left, isThoroughOnly?: true])[] = [
  ['while it converts', { objects: false, marker: false, outbox: false, recorded: false, segment: true }],
  ['sealed, before upload', { objects: false, marker: false, outbox: false, recorded: false, segment: true }, true],
  ['some artifacts uploaded', { objects: true, marker: false, outbox: false, recorded: false, segment: true }, true],
  ['before the marker', { objects: true, marker: false, outbox: false, recorded: false, segment: true }, true],
  ['marker, before the commit is kept', { objects: true, marker: true, outbox: false, recorded: false, segment: true }, true],
  ['commit kept, before it is sent', { objects: true, marker: true, outbox: true, recorded: false, segment: true }, true],
  ['commit recorded, before delete', { objects: true, marker: true, outbox: true, recorded: true, segment: true }],
  [
    'segment deleted, before the outbox forgets',
    { objects: true, marker: true, outbox: true, recorded: true, segment: false },
    true,
  ],
]

describe('the delivery process dies', () => {
  let installation: Installation
  beforeAll(async () => {
    installation = await Installation.create()
    await installation.start('control', 'ingest')
  })
  afterEach(() => installation.end('delivery', 'SIGTERM'))
  afterAll(() => installation?.[Symbol.asyncDispose]())

  const cases = table.filter(([, , isThoroughOnly]) => isThorough || !isThoroughOnly)
  test.each(cases.map(([moment, left], index) => [moment, left, index] as const))('%s', async (moment, left, index) => {
    const [bucket, name] = [`crash-${index}`, `numbers_${index}`]
    const { id, viewId } = await installation.endpoint({ bucket, view: { name, definition } })
    const numbers = Array.from({ length: 40 }, (_, n) => n)
    let seq = -1
    for (let at = 0; at < numbers.length; at += 10) {
      const lines = numbers.slice(at, at + 10).map((n) => `{"n":${n}}`)
      const { status, body } = await installation.ingest(id, lines.join('\n'))
      expect(status).toBe(202)
      seq = body.segment_seq
    }
    await until('the seal', () => installation.walFiles(id).every((name) => name.endsWith('.wal')))

    const [, signal] = await once(installation.spawn('delivery', { instead: child, args: [moment] }), 'exit')
    expect(signal, installation.log).toBe('SIGKILL')
    expect({
      objects: objects(installation, bucket).length > 0,
      marker: installation.markers(bucket, id).length > 0,
      outbox: outbox(installation).length > 0,
      recorded: (await installation.commits(id)).length > 0,
      segment: installation.walFiles(id).length > 0,
    }).toEqual(left)

    await installation.start('delivery')
    await installation.committed(id, [seq])
    await until('the node to be empty', () => installation.walFiles(id).length === 0 && outbox(installation).length === 0)
    const commits = await installation.commits(id)
    const markers = installation.markers(bucket, id)
    expect(commits.map((commit) => commit.seq)).toEqual(markers.map((marker) => marker.seq).toReversed())
    expect(new Set(commits.map((commit) => commit.id)).size).toBe(commits.length)

    const raw = await readWithDuckDb(installation.artifacts(bucket, id, 'parquet'))
    expect(raw.map(({ payload }) => JSON.parse(String(payload)).n)).toEqual(numbers)
    const typed = await readWithDuckDb(installation.artifacts(bucket, id, `views/${name}/v1`))
    expect(typed.map(({ n }) => Number(n))).toEqual(numbers.filter((n) => n % 5 !== 0))
    const { aggregated } = await installation.ok('GET', `/v1/views/${viewId}/metrics?detail=columns`)
    expect(aggregated.all_time).toEqual({
      processed: 40,
      accepted: 32,
      dropped: 8,
      dlq: 0,
      failed: 0,
      rows: 32,
      duplicates: 0,
      redriven: 0,
    })
    expect(aggregated.columns[0].all_time).toMatchObject({ values: 32, nulls: 0, missing: 0, min: '1', max: '39' })
    for (const { artifacts } of markers) {
      for (const { key, bytes, sha256 } of Object.values(artifacts)) {
        const file = readFileSync(join(installation.buckets, bucket, key))
        expect([file.length, createHash('sha256').update(file).digest('hex')]).toEqual([bytes, sha256])
      }
    }
    // The bucket has no object without a marker: a retry writes the same names.
    const listed = markers.flatMap(({ artifacts }) => Object.values(artifacts).map(({ key }) => key))
    expect(
      objects(installation, bucket)
        .filter((key) => !key.includes('/commits/'))
        .toSorted(),
    ).toEqual(listed.toSorted())
  })
})

function objects(installation: Installation, bucket: string): readonly string[] {
  const folder = join(installation.buckets, bucket, 'in/let')
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(join(installation.buckets, bucket).length + 1))
    .filter((key) => !key.includes('inlet-validation'))
}

function outbox(installation: Installation): readonly string[] {
  return readdirSync(join(installation.directory, 'node/outbox')).filter((name) => name.endsWith('.json'))
}
