/** Small files become one, whose rows are in the order of the segments, and a second run finds nothing to do. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { globSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { isThorough } from '../support/thorough.ts'
import { until } from '../support/until.ts'

type CompactionMarker = {
  readonly artifacts: object
  readonly compacted: {
    readonly kind: string
    readonly key: string
    readonly bytes: number
    readonly sha256: string
    readonly sources: readonly { readonly id: string }[]
  }
}

const program = resolve(import.meta.dirname, '../../src/main.ts')
const definition = { columns: [{ name: 'n', type: 'INTEGER', path: '$.n', required: true }] }

describe('a compaction', () => {
  let inlet: Installation
  let id = ''
  const bucket = 'compacted'
  beforeAll(async () => {
    inlet = await Installation.create()
    await inlet.start('control', 'ingest', 'delivery')
    ;({ id } = await inlet.endpoint({ bucket, view: { name: 'numbers', definition } }))
  })
  afterAll(() => inlet?.[Symbol.asyncDispose]())

  const compactions = () =>
    (inlet.markers(bucket, id) as unknown as readonly CompactionMarker[]).filter(({ compacted }) => compacted !== undefined)
  const commits = () => inlet.markers(bucket, id).filter(({ seq }) => seq !== undefined)
  const to = () => new Date(Date.now() + 60_000).toISOString()

  const command = (...args: readonly string[]) =>
    execFileSync(process.execPath, [program, ...args], {
      env: {
        ...{ PATH: process.env['PATH'], INLET_DATA_DIR: inlet.directory },
        ...{ INLET_URL: inlet.apiUrl, INLET_API_KEY: inlet.apiKey },
      },
      encoding: 'utf8',
    })

  const compact = () => command('endpoints', 'compact', id, '--set', `to=${to()}`, '--wait')

  async function send(...numbers: readonly number[]): Promise<void> {
    for (const n of numbers) {
      const { body } = await inlet.ingest(id, `{"n":${n}}\n{"n":"?"}\n{"n":${n + 1}}`)
      await inlet.committed(id, [body.segment_seq])
    }
  }

  async function ended(job: { readonly id: string }) {
    await until('the end of the job', async () => (await inlet.ok('GET', `/v1/jobs/${job.id}`)).finished_at !== null, 60_000)
    return inlet.ok('GET', `/v1/jobs/${job.id}`)
  }

  test('merges the files of each kind into one, in the order of the segments', async () => {
    await send(0, 10, 20, 30)
    const job = await inlet.ok('POST', `/v1/endpoints/${id}/compact`, { to: to() })
    expect(await ended(job)).toMatchObject({
      ...{ kind: 'compaction', status: 'succeeded', view_id: null, last_error: null },
      segments: { total: 2, done: 2, skipped: 0, failed: 0 },
      counters: { processed: 8 + 12, accepted: 8 + 12 },
    })
    const made = new Map(compactions().map((marker) => [marker.compacted.kind, marker]))
    expect([...made.keys()].toSorted()).toEqual(['parquet', 'views/numbers/v1'])
    const read = async (kind: string) => {
      const { compacted, artifacts } = made.get(kind) ?? expect.fail(kind)
      expect(artifacts).toEqual({})
      const file = readFileSync(join(inlet.buckets, bucket, compacted.key))
      expect([file.length, createHash('sha256').update(file).digest('hex')]).toEqual([compacted.bytes, compacted.sha256])
      expect(compacted.sources.map((source) => source.id)).toEqual(commits().map((commit) => commit.id))
      return readWithDuckDb([join(inlet.buckets, bucket, compacted.key)])
    }
    expect((await read('views/numbers/v1')).map(({ n }) => Number(n))).toEqual([0, 1, 10, 11, 20, 21, 30, 31])
    const raw = await read('parquet')
    expect(raw.map(({ payload }) => payload).slice(0, 4)).toEqual(['{"n":0}', '{"n":"?"}', '{"n":1}', '{"n":10}'])
    expect(raw.map(({ record_index }) => Number(record_index))).toEqual([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])
  })

  test.runIf(isThorough)('the command leaves what was merged, and merges later files among themselves', async () => {
    expect(compact()).toBe('nothing to merge\n')
    await send(40)
    expect(compact()).toBe('nothing to merge\n')
    await send(50)
    expect(compact()).toContain('2 done, 0 failed\n')
    const sources = compactions().flatMap(({ compacted }) => compacted.sources.map((source) => `${compacted.kind} ${source.id}`))
    expect(sources).toHaveLength(12)
    expect(new Set(sources).size).toBe(12)
  })

  test.runIf(isThorough)('a database that lost its compactions gets them back from their markers', async () => {
    await inlet.end('control', 'SIGTERM')
    // As a release before the folder `compacted` left it: the merged file beside its sources.
    const path = globSync(join(inlet.buckets, bucket, '**/commits/*/compact-*.json'))[0] ?? expect.fail('a marker')
    const marker = readFileSync(path, 'utf8')
    const { key } = (JSON.parse(marker) as CompactionMarker).compacted
    renameSync(join(inlet.buckets, bucket, key), join(inlet.buckets, bucket, key.replace('/compacted/', '/')))
    writeFileSync(path, marker.replace(key, key.replace('/compacted/', '/')))
    {
      using db = new DatabaseSync(join(inlet.directory, 'inlet.db'))
      db.exec('PRAGMA foreign_keys = ON; DELETE FROM compactions; DELETE FROM jobs')
    }
    expect(command('commits', 'rebuild', '--endpoint', id)).toContain('4 recorded, 6 already known, 0 rejected')
    expect(command('commits', 'rebuild', '--endpoint', id)).toContain('0 recorded, 10 already known, 0 rejected')
    await inlet.start('control')
    expect(compact()).toBe('nothing to merge\n')
  })
})
