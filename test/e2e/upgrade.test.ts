/** Data that an earlier version left when its machine lost power, taken over by this one. tools/write-upgrade-fixture.ts wrote it. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { ApiClient } from '../support/api-client.ts'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { artifactPaths, readMarkers } from '../support/markers.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { until } from '../support/until.ts'

const fixtures = resolve(import.meta.dirname, '../upgrade')

describeWith('processes', 'an upgrade', () => {
  test.each(readdirSync(fixtures))('from %s loses nothing, and stores nothing twice', async (name) => {
    await using inlet = await Installation.create({ environment: { INLET_COMMITS_KEPT_DAYS: '3650' } })
    execFileSync('tar', ['--extract', '--file', join(fixtures, name), '--directory', inlet.directory])
    const { apiKey, endpoint, records } = JSON.parse(readFileSync(join(inlet.directory, 'fixture.json'), 'utf8'))
    inlet.configure({ INLET_DATA_DIR: join(inlet.directory, 'data') })
    await inlet.start('start')
    // The key of then works.
    const api = new ApiClient({ ...inlet.address, apiKey })
    const commits = () => api.commits(endpoint)
    const total = (list: readonly { records: number }[]) => list.reduce((sum, commit) => sum + commit.records, 0)
    await until('every record to be committed', async () => total(await commits()) === records, 60_000)

    const bucket = join(inlet.directory, 'data/buckets/local')
    const delivered = async () => {
      const markers = readMarkers(bucket, '', endpoint)
      const raw = await readWithDuckDb(artifactPaths(bucket, markers, 'parquet'))
      const rows = await readWithDuckDb(artifactPaths(bucket, markers, 'views/numbers/v1'))
      return { markers, numbers: raw.map(({ payload }) => JSON.parse(String(payload)).number).toSorted((a, b) => a - b), rows }
    }
    const all = Array.from({ length: records }, (_, n) => n)
    const { markers, numbers, rows } = await delivered()
    expect(numbers).toEqual(all)
    expect(rows.map(({ n }) => Number(n)).toSorted((a, b) => a - b)).toEqual(all.filter((n) => n % 10 !== 9))
    expect((await commits()).map(({ id }) => id).toSorted()).toEqual(markers.map(({ id }) => id).toSorted())

    // What was configured is there, and works.
    expect((await api.ok('GET', '/v1/views')).items.map((view: { name: string }) => view.name)).toContain('numbers')
    expect(await api.ingest(endpoint, `{"n":1,"number":${records}}\n`)).toMatchObject({ status: 202 })
    await until('the new record', async () => total(await commits()) === records + 1, 30_000)
    await inlet.end('start', 'SIGTERM')
    await inlet.start('start')
    expect(total(await commits())).toBe(records + 1)
    expect((await delivered()).numbers).toEqual([...all, records])
  })
})
