/** `inlet scrub` on directories that lack something, or in which something cannot be read. */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readConfig } from '#config/config.ts'
import { RequestFiles } from '#ingest/idempotency/request-files.ts'
import { systemFiles } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import type { Finding } from '#model/scrub.ts'
import { runCli } from '../../../test/support/cli.ts'

const fixtures = resolve(import.meta.dirname, '../../../test/fixtures/wal')
const logName = '0b8fbf52-0d6e-4f0f-9a83-7f8f9c1d2e3f'
let data = ''

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'inlet-scrub-'))
})
afterEach(() => rm(data, { recursive: true }))

/** The node of a machine that joined, after delivery ran. */
async function aNode(): Promise<void> {
  await mkdir(join(data, 'node/wal', logName), { recursive: true })
  await mkdir(join(data, 'node/outbox'))
  await cp(join(fixtures, 'salt-key'), join(data, 'node/wal/salt-key'))
  await cp(join(fixtures, 'http-ndjson.wal'), join(data, 'node/wal', logName, '000000000041-k3v9x0q2ab.wal'))
  await writeFile(join(data, 'node/id'), `${logName}\n`)
  await writeFile(join(data, 'node/marker-key'), `${'k'.repeat(43)}\n`)
}

async function scrub() {
  const config = readConfig({ INLET_DATA_DIR: data })
  const { code, out, err } = await runCli(['scrub', '--json'], { config })
  if (out === '') return { code, err, seen: [] }
  const { findings } = JSON.parse(out) as { findings: readonly Finding[] }
  return { code, err, seen: findings.map(({ kind, where }) => [kind, where]) }
}

async function replaceByFile(path: string): Promise<void> {
  await rm(join(data, path), { recursive: true })
  await writeFile(join(data, path), 'x')
}

async function replaceByDirectory(path: string): Promise<void> {
  await rm(join(data, path), { force: true })
  await mkdir(join(data, path))
}

test('a node that joined another machine is verified without a database', async () => {
  await aNode()
  expect(await scrub()).toEqual({ code: 0, err: '', seen: [] })
})

test('a missing key of markers is a finding, and is not created', async () => {
  await aNode()
  await rm(join(data, 'node/marker-key'))
  const before = await readdir(data, { recursive: true })
  expect(await scrub()).toMatchObject({ code: 1, seen: [['missing', 'node/marker-key']] })
  expect(await readdir(data, { recursive: true })).toEqual(before)
})

test('an empty directory is refused: nothing was verified', async () => {
  expect(await scrub()).toEqual({ code: 1, seen: [], err: expect.stringMatching(/nothing was verified.*INLET_DATA_DIR/) })
})

test.each(['secret-key', 'inlet.db.lock', 'operator-token', 'buckets'])('a database is missed beside %s', async (name) => {
  await (name === 'buckets' ? mkdir(join(data, name)) : writeFile(join(data, name), 'x'))
  expect(await scrub()).toMatchObject({ code: 1, seen: [['missing', 'inlet.db']] })
})

test.each([['wal', 'node/wal'] as const, ['id', 'node/id'] as const])(
  'a node without its %s is a finding',
  async (name, where) => {
    await aNode()
    await rm(join(data, 'node', name), { recursive: true })
    expect(await scrub()).toMatchObject({ code: 1, seen: [['missing', where]] })
  },
)

test('everything that cannot be read is a finding, and hides no other', async () => {
  await aNode()
  await writeFile(join(data, 'node/marker-key'), 'k'.repeat(10))
  await replaceByFile('node/outbox')
  await replaceByDirectory('node/id')
  await replaceByDirectory(`node/wal/${logName}/high-water`)
  const segment = join(data, 'node/wal', logName, '000000000041-k3v9x0q2ab.wal')
  const bytes = await readFile(segment)
  bytes[250] = (bytes[250] ?? 0) ^ 1
  await writeFile(segment, bytes)
  // A database that is none.
  await writeFile(join(data, 'inlet.db'), 'x')
  expect(await scrub()).toMatchObject({
    code: 1,
    err: '',
    seen: [
      ['unreadable', 'node/id'],
      ['unreadable', 'node/marker-key'],
      ['unreadable', `${logName}/high-water`],
      ['segment_damaged', `${logName}/41-k3v9x0q2ab`],
      ['unreadable', 'outbox'],
      ['unreadable', 'the buckets'],
    ],
  })
})

test('idempotency keys that are damaged or gone are findings, an end that is being written is not', async () => {
  await aNode()
  const directory = join(data, 'node/stored-requests')
  const hour = Math.floor(Date.now() / 3_600_000)
  const request = (n: number) => ({
    ...{ endpointId: logName, id: Buffer.alloc(16, n), body: Buffer.alloc(16, n), seq: n },
    ...{ records: 1, bytes: 9, storedAtMs: Date.now() },
  })
  const quiet = () => undefined
  const logger = createLogger('ingest', 'silent')
  const keys = new RequestFiles({
    ...{ directory, title: 'stored-requests', files: systemFiles, logger, onOpened: quiet, onRemoved: quiet },
    clock: { monotonic: () => 0, surelyBefore: () => Number.NEGATIVE_INFINITY },
  })
  await keys.append(hour, [1, 2, 3, 4].map(request))
  await keys.append(hour - 1, [5, 6].map(request))
  await keys.sync()
  await keys.writeCounts()
  await keys.close()
  const [path, earlier] = [join(directory, `${hour}.requests`), join(directory, `${hour - 1}.requests`)]
  const bytes = await readFile(path)
  await writeFile(path, Buffer.concat([bytes, Buffer.alloc(100)]))
  expect(await scrub()).toMatchObject({ code: 0, seen: [] })
  bytes[80 + 3] = (bytes[80 + 3] ?? 0) ^ 1
  await writeFile(path, bytes)
  await writeFile(earlier, (await readFile(earlier)).subarray(0, 80))
  expect((await scrub()).seen).toEqual([
    ['keys_damaged', `stored-requests/${hour - 1}.requests`],
    ['keys_damaged', `stored-requests/${hour}.requests`],
  ])
  await rm(earlier)
  await replaceByDirectory(`node/stored-requests/${hour}.requests`)
  expect((await scrub()).seen).toEqual([
    ['keys_damaged', `stored-requests/${hour - 1}.requests`],
    ['unreadable', `stored-requests/${hour}.requests`],
  ])
})

test('what lies beside the idempotency keys of lost nodes hides none of the own keys', async () => {
  await aNode()
  const adopted = join(data, 'node/adopted-requests')
  const lost = `${newId()}-0a0b0c0d`
  const hour = Math.floor(Date.now() / 3_600_000)
  for (const name of [lost, `new-${newId()}`, 'lost+found']) {
    await mkdir(join(adopted, name), { recursive: true })
    await writeFile(join(adopted, name, `${hour}.requests`), Buffer.alloc(80, 7))
  }
  await writeFile(join(adopted, 'file'), '')
  expect(await scrub()).toMatchObject({ code: 0, seen: [] })
  await writeFile(join(adopted, lost, `${hour}.requests`), '')
  await replaceByDirectory(`node/adopted-requests/${lost}/${hour}.requests`)
  expect((await scrub()).seen).toEqual([['unreadable', `adopted-requests/${lost}/${hour}.requests`]])
})
