import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readOrCreateNodeToken } from '#auth/token-files.ts'
import { assertCanListen } from '#lib/assert-can-listen.ts'
import { lockExclusively } from '#lib/exclusive.ts'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { startProblem } from './start-problem.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-start-'))
})
afterEach(() => rm(directory, { recursive: true }))

test('a taken port', async () => {
  const first = createServer()
  const port = await listen(first, 0)
  const error = await listen(createServer(), port).catch((thrown: unknown) => thrown)
  first.close()
  const problem = `127.0.0.1:${port} is in use by another process: stop it, or listen elsewhere with`
  expect(startProblem(error)).toBe(`${problem} INLET_CONTROL_LISTEN`)
  expect(startProblem(Object.assign(error ?? {}, { setting: 'INLET_MQTT_LISTEN' }))).toBe(`${problem} INLET_MQTT_LISTEN`)
})

test('a host name that no address belongs to', async () => {
  const error = await assertCanListen({ host: 'nowhere.invalid', port: 0 }, 'INLET_MQTT_LISTEN').catch(
    (thrown: unknown) => thrown,
  )
  expect(startProblem(error)).toMatch(/^cannot listen on nowhere\.invalid \(E\w+\): set another address with INLET_MQTT_LISTEN$/)
})

test('a second instance, and a lock file that is something else', async () => {
  const path = join(directory, 'ingest.lock')
  using _held = lockExclusively(path)
  expect(startProblem(thrownBy(() => lockExclusively(path)))).toBe(
    `${path} is locked by another process: is another Inlet running on this data directory?`,
  )
  const garbage = join(directory, 'garbage.lock')
  await writeFile(garbage, 'x'.repeat(5_000))
  expect(startProblem(thrownBy(() => lockExclusively(garbage)))).toBe(
    `${garbage} is not a lock file. Stop Inlet, delete the file, and start again`,
  )
  expect(startProblem(thrownBy(() => lockExclusively(directory)))).toContain(`${directory} cannot be used as a lock file`)
})

test('a lock file that is empty is one', async () => {
  const path = join(directory, 'empty.lock')
  await writeFile(path, '')
  lockExclusively(path)[Symbol.dispose]()
})

test('a data directory that cannot be created', async () => {
  const file = join(directory, 'file')
  await writeFile(file, '')
  const error = await systemFiles.makeDirectory(join(file, 'data')).catch((thrown: unknown) => thrown)
  expect(startProblem(error)).toBe(
    `${join(file, 'data')} cannot be used (ENOTDIR): a directory on the way is a file; move it away, or set INLET_DATA_DIR`,
  )
})

test('a file where a directory has to be, and the other way round', async () => {
  const file = join(directory, 'outbox')
  await writeFile(file, '')
  const error = await systemFiles.makeDirectory(file).catch((thrown: unknown) => thrown)
  expect(startProblem(error)).toBe(`${file} cannot be used (EEXIST): it is a file, but has to be a directory; move it away`)
  const token = await readOrCreateNodeToken(system, directory).catch((thrown: unknown) => thrown)
  expect(startProblem(token)).toContain(`${directory} is a directory, but has to be a file: move it away`)
})

test.each([
  ['ENOENT', 'nothing can be created there; set INLET_DATA_DIR'],
  ['EACCES', 'give this user the right to write there'],
  ['EROFS', 'mount the file system writable'],
  ['ENOSPC', 'make room on the disk'],
])('a data directory with %s', (code, remedy) => {
  const error = Object.assign(new Error(`${code}: mkdir`), { code, path: '/data', syscall: 'mkdir' })
  expect(startProblem(error)).toContain(`/data cannot be used (${code}): ${remedy}`)
})

test.each(['', 'short'])('a node token that is %j', async (text) => {
  const path = join(directory, 'node-token')
  await writeFile(path, text)
  const error = await readOrCreateNodeToken(system, path).catch((thrown: unknown) => thrown)
  expect(startProblem(error)).toMatch(/node-token is (empty|not a node token: it has fewer than 32 characters)\. Restore it/)
})

test('a bug is not explained away', () => {
  expect(startProblem(new TypeError('x is not a function'))).toBeUndefined()
})

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

function thrownBy(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  return undefined
}
