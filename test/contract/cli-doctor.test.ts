import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openKeyring } from '#auth/secret-key.ts'
import { newSecretKey } from '#lib/keyring.ts'
import { getOrInsertSecret } from '#store/installation-secrets.ts'
import { migrate } from '#store/migrations/migrate.ts'
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

test('a lost database, a lost secret key and an interrupted restore fail, and say what to do', async () => {
  const data = join(directory, 'half')
  const key = join(data, 'secret-key')
  const store = await openStore(join(data, 'inlet.db'))
  await migrate(store)
  const text = await openKeyring({ configured: null, path: key, inUse: undefined })
  await getOrInsertSecret(store.db, text, 'downloads', () => 'secret')
  await store.close()
  const failures = async () => {
    const { code, findings } = await examine({ INLET_DATA_DIR: data })
    const failed = findings.filter(({ status }) => status === 'fail')
    expect(code).toBe(failed.length > 0 ? 1 : 0)
    return failed.map(({ check, next_step }) => `${check}: ${next_step}`)
  }
  expect(await failures()).toEqual([])

  renameSync(key, join(directory, 'key'))
  expect(await failures()).toEqual([expect.stringMatching(/^secret key: .*docs\/operations.md/)])
  writeFileSync(key, newSecretKey())
  expect(await failures()).toEqual([expect.stringMatching(/^secret key: /)])
  renameSync(join(directory, 'key'), key)

  mkdirSync(join(data, 'restoring'))
  expect(await failures()).toEqual(['restore: repeat inlet restore'])
  rmSync(join(data, 'restoring'), { recursive: true })

  writeFileSync(join(data, 'inlet.db'), 'no database'.repeat(1000))
  expect(await failures()).toEqual(['database: restore it: docs/how-to/lost-database.md'])
  for (const name of readdirSync(data).filter((each) => each.startsWith('inlet.db'))) rmSync(join(data, name))
  expect(await failures()).toEqual([expect.stringMatching(/^database: .*INLET_DATABASE_URL/)])
})

test('a full disk is said to be full', { skip: process.getuid?.() !== 0 }, async () => {
  const data = join(directory, 'full')
  mkdirSync(data)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8k', 'tmpfs', data])
  try {
    const { code, about } = await examine({ INLET_DATA_DIR: data })
    expect(code).toBe(1)
    expect(about('disk space')).toMatchObject([{ status: 'fail', next_step: 'make room on the disk' }])
  } finally {
    execFileSync('umount', [data])
  }
})

test('a profile that cannot be read hides nothing else', async () => {
  const config = join(directory, 'config')
  mkdirSync(join(config, 'inlet/profiles.json'), { recursive: true })
  const { code, about } = await examine({ XDG_CONFIG_HOME: config })
  expect([code, about('connection')]).toEqual([1, [expect.objectContaining({ next_step: 'sign in again (inlet login)' })]])
  expect(about('node')).toHaveLength(1)
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

test.each(['', 'file:copies'])('--store "%s" names no copy store', async (store) => {
  const { code, out, err } = await runCli(['doctor', '--store', store], {
    environment: { INLET_DATA_DIR: join(directory, 'nowhere') },
  })
  expect([code, `${out}${err}`]).toEqual([
    expect.any(Number),
    expect.stringContaining('must be s3://bucket/prefix or file:///directory'),
  ])
  expect(code).not.toBe(0)
})
