import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { migrate } from '#store/migrate.ts'
import { openStore } from '#store/store.ts'
import { runCli } from '../support/cli.ts'
import { useControl } from '../support/control.ts'

const directory = mkdtempSync(join(tmpdir(), 'inlet-doctor-'))
const control = useControl()
afterAll(() => rmSync(directory, { recursive: true }))

type Finding = { readonly check: string; readonly status: string; readonly message: string; readonly next_step: string | null }

/** Nothing listens on a port that the system chooses. */
const quiet = { INLET_CONTROL_LISTEN: '127.0.0.1:0', INLET_NODE_API_LISTEN: '127.0.0.1:0', INLET_INGEST_LISTEN: '127.0.0.1:0' }

let homes = 0

async function examine(settings: Record<string, string> = {}) {
  const home = join(directory, `home-${homes++}`)
  mkdirSync(home)
  const { code, out, err } = await runCli(['doctor', '--json'], {
    environment: { HOME: home, ...quiet, INLET_DATA_DIR: join(home, 'data'), ...settings },
  })
  expect(err).toBe('')
  const findings = JSON.parse(out) as readonly Finding[]
  for (const { status, next_step } of findings) expect(status === 'ok').toBe(next_step === null)
  return { home, code, findings, about: (check: string) => findings.filter((finding) => finding.check === check) }
}

test('before the first start it says so, and creates nothing', async () => {
  const { home, code, about } = await examine()
  expect([code, readdirSync(home)]).toEqual([0, []])
  expect(about('data directory')).toMatchObject([{ status: 'warn', next_step: expect.stringContaining('inlet start') }])
  expect(about('port')).toHaveLength(3)
  expect(about('connection')).toEqual([])
})

test('a wrong configuration fails', async () => {
  const { code, findings } = await examine({ INLET_NO_SUCH_OPTION: '1' })
  expect(code).toBe(1)
  expect(findings).toMatchObject([
    { check: 'configuration', status: 'fail', message: expect.stringContaining('INLET_NO_SUCH_OPTION') },
  ])
})

test('an installation is examined, and its files are left as they are', async () => {
  const data = join(directory, 'installed')
  const store = await openStore(join(data, 'inlet.db'))
  await migrate(store)
  await store.close()
  const before = readdirSync(data).toSorted()
  const { about } = await examine({ INLET_DATA_DIR: data })
  expect(readdirSync(data).toSorted()).toEqual(before)
  expect(about('database')).toMatchObject([{ status: 'ok', message: expect.stringContaining('schema version') }])
  expect(about('disk speed')).toMatchObject([{ message: expect.stringMatching(/^a sync takes [\d.]+ ms/) }])
})

test('an older database is a warning, and is not migrated', async () => {
  const path = join(directory, 'old.db')
  const store = await openStore(path)
  await store.db.schema.createTable('schema_migrations').addColumn('version', 'integer').execute()
  for (let run = 0; run < 2; run++) {
    const { about } = await examine({ INLET_DATABASE_URL: path })
    expect(about('database')).toMatchObject([{ status: 'warn', message: expect.stringContaining('schema version 0') }])
  }
  await store.close()
})

test('a port that another program uses fails', async () => {
  await using other = createServer((socket) => socket.destroy())
  await new Promise<void>((done) => other.listen(0, '127.0.0.1', done))
  const { port } = other.address() as { port: number }
  const { code, about } = await examine({ INLET_INGEST_LISTEN: `127.0.0.1:${port}` })
  expect(code).toBe(1)
  expect(about('port').filter(({ status }) => status === 'fail')).toMatchObject([
    { message: expect.stringContaining('no Inlet answers'), next_step: expect.stringContaining('INLET_INGEST_LISTEN') },
  ])
})

test('the connection and the key are checked, and the key is not printed', async () => {
  const { api_key } = await control().newAccount()
  const { about, findings } = await examine({ INLET_URL: control().url, INLET_API_KEY: api_key })
  expect(about('connection').map(({ status }) => status)).toEqual(['ok'])
  expect(about('clock')).toHaveLength(1)
  expect(about('API key')).toMatchObject([{ status: 'ok' }])
  expect(JSON.stringify(findings)).not.toContain(api_key)
  const wrong = await examine({ INLET_URL: control().url, INLET_API_KEY: `${api_key.slice(0, -4)}AAAA` })
  expect(wrong.code).toBe(1)
  expect(wrong.about('API key')).toMatchObject([{ status: 'fail' }])
})
