/** The first contact with a database: a sentence for the operator if it cannot be used. */
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { UserError } from '#lib/user-error.ts'
import { prepareDatabase } from '#store/migrations/prepare.ts'
import { openStore } from '#store/store.ts'
import { freePort } from '../../tools/services/processes.ts'
import { postgresUrl } from '../support/databases.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-prepare-'))
})
afterEach(() => rm(directory, { recursive: true }))

async function problemOf(url: string): Promise<string> {
  const store = await openStore(url)
  const error = await prepareDatabase(store, url).catch((thrown: unknown) => thrown)
  await store.close()
  if (!(error instanceof UserError)) throw error
  return error.message
}

test('Postgres that does not run', async () => {
  const port = await freePort()
  const problem = await problemOf(`postgres://someone:secret@127.0.0.1:${port}/inlet`)
  expect(problem).toContain(`the database at 127.0.0.1:${port} cannot be used (connect ECONNREFUSED`)
  expect(problem).toMatch(/: start it, or correct INLET_DATABASE_URL$/)
  expect(problem).not.toContain('secret')
})

test('Postgres whose first connection gets no reply in time: a second one decides', async () => {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    if (connections > 1) socket.once('data', () => socket.end(refusal('3D000', 'database "inlet" does not exist')))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  expect(await problemOf(`postgres://127.0.0.1:${port}/inlet`)).toContain('(database "inlet" does not exist): create it')
  expect(connections).toBe(2)
  server.close()
})

/** An ErrorResponse of Postgres. */
function refusal(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C${code}\0M${message}\0\0`)
  const length = Buffer.alloc(4)
  length.writeInt32BE(4 + fields.length)
  return Buffer.concat([Buffer.from('E'), length, fields])
}

test('a file that is not a database, one that is damaged, and a directory', async () => {
  const path = join(directory, 'inlet.db')
  await writeFile(path, 'x'.repeat(10_000))
  expect(await problemOf(path)).toMatch(/inlet\.db: this file is not a database: restore a backup, or correct INLET_DATABASE_URL/)
  expect(await problemOf(directory).catch((error: unknown) => error)).toMatchObject({ code: 'EISDIR', path: directory })
})

test('a database file whose pages are lost', async () => {
  const path = join(directory, 'inlet.db')
  const store = await openStore(path)
  await prepareDatabase(store, path)
  await store.close()
  const whole = await readFile(path)
  await writeFile(path, Buffer.concat([whole.subarray(0, 4_096), Buffer.alloc(whole.length - 4_096, 0xaa)]))
  expect(await problemOf(path)).toMatch(/inlet\.db: the database is damaged: restore a backup of it/)
})

describe.skipIf(postgresUrl === undefined)('Postgres that refuses (skipped without INLET_TEST_POSTGRES)', () => {
  test('a database that does not exist', async () => {
    const url = new URL(postgresUrl ?? '')
    url.pathname = '/nowhere'
    expect(await problemOf(url.href)).toMatch(/database "nowhere" does not exist\): create it, or correct INLET_DATABASE_URL/)
  })
})
