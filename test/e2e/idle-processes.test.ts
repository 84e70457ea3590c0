/** Processes of `inlet start` do not load these before they need them: each would cost memory for as long as they run. */
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { isThorough } from '../support/thorough.ts'

/** Packages that the supervisor may load, so that it stays the smallest process: options, log lines, and their dependencies. */
const smallPackages = [
  ...['@stricli/core', 'pino', '@pinojs/redact', 'atomic-sleep', 'on-exit-leak-free', 'pino-std-serializers', 'process-warning'],
  ...['quick-format-unescaped', 'real-require', 'safe-stable-stringify', 'sonic-boom', 'thread-stream'],
]
/** DuckDB is for workers, the others are for settings that a plain start does not have, and for people who sign in. */
const onDemand = [
  ...['@duckdb/node-api', '@duckdb/node-bindings', '@aws-sdk/client-s3', '@aws-sdk/client-sts', '@aws-sdk/client-route-53'],
  ...['@aws-sdk/lib-storage', '@smithy/core', 'pg', 'acme-client', 'better-auth', '@better-auth/passkey', 'dns-packet'],
  ...['@peculiar/x509', 'reflect-metadata', 'sql-formatter'],
]

/** Appends what a process loads to a file named after its command. */
const recorder = (directory: string) => `
  import { appendFileSync } from 'node:fs'
  import { join } from 'node:path'
  import { registerHooks } from 'node:module'
  const path = join(${JSON.stringify(directory)}, process.argv[2] ?? 'other')
  registerHooks({ load: (url, context, next) => (appendFileSync(path, url + '\\n'), next(url, context)) })
  process.on('exit', () => appendFileSync(path, process.moduleLoadList.join('\\n')))
`

let directory = ''

function loadedBy(command: string): readonly string[] {
  return readFileSync(join(directory, command), 'utf8').split('\n')
}

/** Returns the names of the packages that a process loaded. */
function packagesOf(command: string): readonly string[] {
  const names = loadedBy(command).flatMap((line) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(line)?.[1] ?? [])
  return [...new Set(names)]
}

// test/architecture.test.ts proves the same of what files import, without a process.
describe.runIf(isThorough)('a plain installation', () => {
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'inlet-loaded-'))
    const importFlag = `--import=data:text/javascript,${encodeURIComponent(recorder(directory))}`
    await using installation = await Installation.create({ environment: { NODE_OPTIONS: importFlag } })
    await installation.start('start')
    const definition = { columns: [{ name: 'n', type: 'INTEGER', path: '$.n' }] }
    const { id } = await installation.endpoint({ bucket: 'idle', view: { name: 'idle', definition }, segment_max_age_seconds: 1 })
    const preview = await installation.api('POST', '/v1/views/preview', { definition, samples: ['{"n":1}'] })
    expect(preview.status).toBe(200)
    const { body } = await installation.ingest(id, '{"n":1}')
    await installation.committed(id, [body.segment_seq])
  }, 120_000)
  afterAll(() => rm(directory, { recursive: true }))

  test('the supervisor loads what it needs for options and log lines, and nothing else', () => {
    expect(packagesOf('start')).toContain('pino')
    expect(packagesOf('start').filter((name) => !smallPackages.includes(name))).toEqual([])
  })

  test.each(['control', 'delivery', 'ingest'])('%s loads nothing that a plain installation does without', (command) => {
    const packages = packagesOf(command)
    expect(packages).toContain('zod')
    expect(packages.filter((name) => onDemand.includes(name))).toEqual([])
    // A part of Node that takes 10 MB.
    const parts = loadedBy(command)
    expect(parts).toContain('NativeModule internal/modules/esm/loader')
    expect(parts.filter((line) => line.includes('undici'))).toEqual([])
  })

  test('workers run without the environment of the processes that start them, so they record nothing here', () => {
    expect(readdirSync(directory).toSorted()).toEqual(['control', 'delivery', 'ingest', 'start'])
  })
})
