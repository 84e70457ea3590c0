/**
 * Data that an earlier version left when its machine lost power, taken over by this one with every setting that the docs recommend.
 * tools/write-upgrade-fixture.ts wrote it: for a release, and for commits before which the data or the settings had another form.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { ApiClient } from '../support/api-client.ts'
import { describeWith } from '../support/deployment.ts'
import { hardenedSettings, secured, startReady } from '../support/hardened.ts'
import { Installation } from '../support/installation.ts'
import { artifactPaths, readMarkers } from '../support/markers.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { until } from '../support/until.ts'

const root = resolve(import.meta.dirname, '../..')
const fixtures = join(root, 'test/upgrade')
const all = readdirSync(fixtures)

// The certificate of a test is its own authority.
process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'

type Fixture = {
  readonly apiKey: string
  readonly endpoint: string
  readonly records: number
  /** Settings of the process that wrote it; missing where that was only the key. */
  readonly settings?: Readonly<Record<string, string>>
}

describeWith('processes', 'an upgrade', () => {
  test.each(all)('from %s loses nothing, and stores nothing twice', async (name) => {
    await using inlet = await Installation.create({ environment: { INLET_COMMITS_KEPT_DAYS: '3650' } })
    execFileSync('tar', ['--extract', '--file', join(fixtures, name), '--directory', inlet.directory])
    const fixture: Fixture = JSON.parse(readFileSync(join(inlet.directory, 'fixture.json'), 'utf8'))
    const { apiKey, endpoint, records, settings } = fixture
    inlet.configure({
      ...(await hardenedSettings(inlet)),
      ...settings,
      INLET_BOOTSTRAP_API_KEY: apiKey,
      INLET_DATA_DIR: join(inlet.directory, 'data'),
    })
    await startReady(inlet)
    // The key of then works, with what it could do then.
    const api = new ApiClient({ apiUrl: secured(inlet.apiUrl), ingestUrl: secured(inlet.ingestUrl), apiKey })
    const { items: keys } = await api.ok('GET', '/v1/keys')
    const hasAllScopes = keys.some(({ scopes }: { scopes: readonly string[] }) => scopes.includes('query'))
    expect(inlet.log.includes('INLET_BOOTSTRAP_API_KEY is a key without the scope query')).toBe(!hasAllScopes)
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
    const sent = Array.from({ length: records }, (_, n) => n)
    const { markers, numbers, rows } = await delivered()
    expect(numbers).toEqual(sent)
    expect(rows.map(({ n }) => Number(n)).toSorted((a, b) => a - b)).toEqual(sent.filter((n) => n % 10 !== 9))
    expect((await commits()).map(({ id }) => id).toSorted()).toEqual(markers.map(({ id }) => id).toSorted())

    // The configuration is still there, and works.
    expect((await api.ok('GET', '/v1/views')).items.map((view: { name: string }) => view.name)).toContain('numbers')
    expect(await api.ingest(endpoint, `{"n":1,"number":${records}}\n`)).toMatchObject({ status: 202 })
    await until('the new record', async () => total(await commits()) === records + 1, 30_000)
    await inlet.end('start', 'SIGTERM')
    await startReady(inlet)
    expect(total(await commits())).toBe(records + 1)
    expect((await delivered()).numbers).toEqual([...sent, records])
  })

  test('covers every setting that the docs recommend', async () => {
    await using inlet = await Installation.create()
    const newest = execFileSync('tar', ['--extract', '--to-stdout', '--file', join(fixtures, all.at(-1) ?? ''), 'fixture.json'])
    const covered = new Set([
      ...Object.keys(await hardenedSettings(inlet)),
      ...Object.keys((JSON.parse(newest.toString()) as Fixture).settings ?? {}),
    ])
    const [, hardening = ''] = /^## Hardening\n(.*?)^## /ms.exec(readFileSync(join(root, 'docs/security.md'), 'utf8')) ?? []
    const manifests = readdirSync(join(root, 'deploy'), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(env|ya?ml|service)$/.test(name))
      .map((name) => readFileSync(join(root, 'deploy', name), 'utf8'))
    const names = [hardening, ...manifests].flatMap((text) => text.match(/\bINLET_[A-Z0-9_]+/g) ?? [])
    expect(names.length).toBeGreaterThan(20)
    expect([...new Set(names)].filter((name) => !covered.has(name) && elsewhere[name] === undefined).toSorted()).toEqual([])
  })
})

/** Settings that such a start does not have, and why. */
const elsewhere: Readonly<Record<string, string>> = {
  INLET_ALLOW_PLAINTEXT: 'must not be set',
  INLET_CONTROL_LISTEN: 'of every test',
  INLET_INGEST_LISTEN: 'of every test',
  INLET_DATA_DIR: 'of every test',
  INLET_LOG_FORMAT: 'json without a terminal',
  INLET_S3_CREDENTIALS: 'needs a store: test/s3',
  INLET_S3_ENDPOINT: 'needs a store: test/s3',
  INLET_S3_BUCKETS: 'needs a store: test/s3',
  INLET_DATABASE_URL: 'needs Postgres: test/store',
  INLET_MQTT_LISTEN: 'another listener',
  INLET_NODE_ADDRESSES: 'of a node elsewhere',
  INLET_REGION: 'of a node elsewhere',
  INLET_JOIN_TOKEN: 'of a node elsewhere',
  INLET_SHUTDOWN_SECONDS: 'has no effect on data',
  INLET_DISK_BUDGET_BYTES: 'has no effect on data',
  INLET_LEAVE_SECONDS_MIN: 'has no effect on data',
  INLET_LEAVE_SECONDS_MAX: 'has no effect on data',
}
