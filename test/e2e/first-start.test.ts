/** The first steps of a new user: run one command, paste one line, read the Parquet files. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { realLines } from '../support/real-documents.ts'
import { isThorough } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)
const program = resolve(import.meta.dirname, '../../src/main.ts')

describeWith('processes', 'the first start', () => {
  test('the banner’s curl line works as pasted, and within seconds its data is Parquet', async () => {
    const environment = { INLET_BOOTSTRAP_API_KEY: '', INLET_LOG_FORMAT: 'text' }
    await using installation = await Installation.create({ environment })
    await installation.startWithNpm()
    await until('the banner', () => installation.log.includes('After about 60 seconds'))
    await installation.hurryFirstEndpoint()
    expect(installation.log).toMatch(/MQTT +ws:\/\/127\.0\.0\.1:\d+\/mqtt/)
    const curl = /curl -X POST [\s\S]*?}'\n/.exec(installation.log)?.[0] ?? ''
    const { stdout } = await run('bash', ['-c', `${curl.trimEnd()} -s -w '\\n%{http_code}'`])
    const [receipt = '', status] = stdout.split('\n')
    expect(status).toBe('202')
    expect(JSON.parse(receipt)).toEqual({
      accepted_records: 1,
      accepted_bytes: expect.any(Number),
      node_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      segment_seq: 0,
    })

    const files = () => readdirSync(join(installation.buckets, 'local'), { recursive: true, encoding: 'utf8' })
    await until('the marker', () => files().some((name) => /\/commits\/dt=[\d-]+\/.*\.json$/.test(name)), 20_000)
    const views = files().filter((name) => /\/views\/events\/v1\/.*\.parquet$/.test(name))
    expect(views).toHaveLength(1)
    expect(files().some((name) => /\/parquet\/.*\.parquet$/.test(name))).toBe(true)
    expect(files().some((name) => /\/segments\/.*\.wal\.zst$/.test(name))).toBe(true)
    const rows = await readWithDuckDb(views.map((name) => join(installation.buckets, 'local', name)))
    expect(rows).toMatchObject([{ event: 'signup', user_id: 'u-1', amount: 12.5, sent_at: '2026-11-20T08:15:30.000Z' }])
    const open = (await readdir(installation.directory, { recursive: true, withFileTypes: true }))
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0)
    expect(open, 'files that other users can read').toEqual([])
    // A person sees what arrived and what was committed, and nothing else.
    const endpointId = /endpoint=([0-9a-f-]+)/.exec(curl)?.[1]
    const commit = /^[\d:]+ {2}delivery {2}1 record → events v1, \d+(\.\d)? s$/m
    await until('a line about the commit', () => commit.test(installation.log))
    const lines = installation.log.match(/^\d\d:\d\d:\d\d .*$/gm) ?? []
    expect(lines).toEqual([
      expect.stringContaining(`ingest    endpoint ${endpointId} receives data`),
      expect.stringMatching(' → '),
    ])

    // Output that is not a terminal may be kept: it has the path of the key. Machines get JSON.
    expect(installation.log).not.toMatch(/ing_live_\w{32}/)
    const path = join(installation.directory, 'first-api-key')
    expect(curl).toContain(path)
    const key = readFileSync(path, 'utf8').trim()
    expect(key).toMatch(/^ing_live_\w{32}$/)
    installation.configure({ INLET_LOG_FORMAT: '' })
    // npm ends after the processes: otherwise the next start would find their locks.
    expect(await installation.end('start', 'SIGTERM')).toBe(0)
    const before = installation.log.length
    await installation.start('start')
    await until('the second banner', () => installation.log.slice(before).includes('"msg":"inlet running"'))
    expect(installation.log.slice(before)).not.toContain(key)
    expect(installation.log.slice(before)).toMatch(/^{"level":"info",.*"process":"ingest",.*"msg":"ingest listening"}$/m)
    for (const line of installation.log.slice(before).trimEnd().split('\n')) expect(() => JSON.parse(line), line).not.toThrow()
  })

  test('the first key is in a file also if control runs alone', async () => {
    await using installation = await Installation.create({ environment: { INLET_BOOTSTRAP_API_KEY: '' } })
    await installation.start('control')
    const path = join(installation.directory, 'first-api-key')
    expect(readFileSync(path, 'utf8')).toMatch(/^ing_live_\w{32}\n$/)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(installation.log).toContain(path)
    expect(installation.log).not.toMatch(/ing_live_\w{32}/)
  })

  test('the demo shows rows, dead letters and counters that add up', async () => {
    const { stdout } = await run(process.execPath, [program, 'demo', '--events', '1000', '--seed', '7'])
    expect(stdout).toMatch(/MQTT .* 100 % .*250 messages/)
    expect(stdout).toMatch(/HTTP .* 100 %/)
    expect(stdout).toMatch(/delivering .* 100 %/)
    expect(stdout).toMatch(/1,000 records were acknowledged/)
    expect(stdout).toMatch(/cast_failed +value/)
    const [, processed, ...outcomes] = /activity +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)/.exec(stdout)?.map(Number) ?? []
    expect(processed).toBe(1000)
    expect(outcomes.reduce((sum, count) => sum + count)).toBe(1000)
    expect(stdout).toContain(`Typed Parquet: ${outcomes[0]?.toLocaleString('en-US')} rows`)
  })

  const github = realLines('github-events.ndjson')

  test.runIf(isThorough && github !== undefined)('the demo takes a file of real events', async () => {
    const events = github?.map((line) => JSON.parse(line)) ?? []
    const kept = events.filter(({ type }) => type !== 'WatchEvent')
    const dead = kept.filter(({ org }) => org?.gravatar_id === '')
    const path = resolve(
      process.env['INLET_TEST_DATA'] ?? resolve(import.meta.dirname, '../../../shared/data'),
      'github-events.ndjson',
    )
    const { stdout } = await run(process.execPath, [program, 'demo', '--file', path])
    const counters = [events.length, kept.length - dead.length, events.length - kept.length, dead.length]
    expect(stdout.replaceAll(/ +/g, ' ')).toContain(`github_events ${counters.join(' ')} 0`)
    expect(stdout).toMatch(/cast_failed +org_picture/)
  })
})
