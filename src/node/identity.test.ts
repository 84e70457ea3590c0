import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { lockExclusively } from '#lib/exclusive.ts'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { newId } from '#model/id.ts'
import { adoptWal, readOrCreateNodeId } from './identity.ts'

const logger = createLogger('test', 'silent')
let directory = ''
const [a, b] = [newId(), newId()]

const paths = () => ({
  nodeId: join(directory, 'id'),
  walNodeId: join(directory, 'wal', 'node-id'),
  nodeCredential: join(directory, 'credential'),
  ingestLock: join(directory, 'ingest.lock'),
  deliveryLock: join(directory, 'delivery.lock'),
})

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-identity-'))
})
afterEach(() => rm(directory, { recursive: true }))

/** Writes the id of the node and that of the log; undefined leaves the file away. */
async function given(own: string | undefined, owner: string | undefined, used?: string): Promise<void> {
  for (const [path, text] of [[paths().nodeId, own] as const, [paths().walNodeId, owner] as const]) {
    await mkdir(dirname(path), { recursive: true })
    if (text !== undefined) await writeFile(path, text)
  }
  if (used === 'salt-key') await writeFile(join(directory, 'wal', used), 'key')
  else if (used !== undefined) await mkdir(join(directory, 'wal', used))
}

describe('the id of a node', () => {
  test('is created once, by any of several processes, and kept beside the log as well', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, () => readOrCreateNodeId(paths(), system)))
    expect(new Set(ids).size).toBe(1)
    expect(await readFile(paths().nodeId, 'utf8')).toBe(`${ids[0]}\n`)
    expect(await readFile(paths().walNodeId, 'utf8')).toBe(`${ids[0]}\n`)
    expect(await readOrCreateNodeId(paths(), system)).toBe(ids[0])
  })

  test.each(['another id', 'no id'])('is refused if the disk misreads it as %s after it was checked', async (misread) => {
    await given(a, a)
    let reads = 0
    const files = {
      ...systemFiles,
      async read(path: string) {
        if (path !== paths().nodeId) return systemFiles.read(path)
        reads += 1
        return reads === 1 ? systemFiles.read(path) : Buffer.from(misread === 'no id' ? 'x' : b)
      },
    }
    await expect(readOrCreateNodeId(paths(), { ...system, files })).rejects.toThrow(UserError)
    expect(reads).toBe(2)
  })

  test('gives its name to a log without one', async () => {
    await given(a, undefined)
    expect(await readOrCreateNodeId(paths(), system)).toBe(a)
    expect(await readFile(paths().walNodeId, 'utf8')).toBe(`${a}\n`)
  })
})

test('a node that has joined does not start without its log, which may have what is not delivered', async () => {
  await given(a, a)
  await writeFile(paths().nodeCredential, 'secret')
  expect(await readOrCreateNodeId(paths(), system)).toBe(a)
  await rm(dirname(paths().walNodeId), { recursive: true })
  for (const prepare of [async () => undefined, () => adoptWal(paths(), system, logger)]) {
    await prepare()
    await expect(readOrCreateNodeId(paths(), system)).rejects.toThrow(`the log of node ${a} is gone`)
  }
})

test('a node that joins while another process of it starts has its log', async () => {
  let isFirst = true
  const files = {
    ...systemFiles,
    async read(path: string) {
      const bytes = await systemFiles.read(path)
      if (path !== paths().walNodeId || !isFirst) return bytes
      isFirst = false
      await readOrCreateNodeId(paths(), system)
      await writeFile(paths().nodeCredential, 'secret')
      return bytes
    },
  }
  expect(await readOrCreateNodeId(paths(), { ...system, files })).toBe((await readFile(paths().nodeId, 'utf8')).trim())
})

test('a node whose id is damaged while another process of it starts is refused', async () => {
  let isFirst = true
  const files = {
    ...systemFiles,
    async read(path: string) {
      const bytes = await systemFiles.read(path)
      if (path !== paths().nodeId || !isFirst) return bytes
      isFirst = false
      await readOrCreateNodeId(paths(), system)
      await writeFile(path, b)
      return bytes
    },
  }
  await expect(readOrCreateNodeId(paths(), { ...system, files })).rejects.toThrow(`but this node is ${b}`)
})

describe('refused with one sentence', () => {
  test.each<[string, string | undefined, string | undefined, readonly string[]]>([
    ['a lost id', undefined, a, ['id is missing', `belongs to node ${a}`, '--adopt']],
    ['the log of another node', a, b, [`belongs to node ${b}`, `this node is ${a}`, `--adopt to continue as node ${b}`]],
    ['an empty id', '', a, ['id is empty', '--adopt', a]],
    ['an id that is garbage', '\0garbage', a, ['id is not the id of a node', '--adopt', a]],
    ['an empty id without a log', '', undefined, ['id is empty', 'delete it to start as a new node']],
    ['an empty id of the log', a, '', ['node-id is empty', '--adopt']],
    ['two that are empty', '', '', ['is empty', 'restore it']],
  ])('%s', async (_, own, owner, parts) => {
    await given(own, owner)
    const error = await readOrCreateNodeId(paths(), system).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(UserError)
    for (const part of parts) expect((error as Error).message).toContain(part)
  })
})

describe('a log that was written before, and has lost its id', () => {
  const uses = ['salt-key', newId()]

  test.each(uses)('is refused under a new id: %s', async (used) => {
    await given(undefined, undefined, used)
    const error = await readOrCreateNodeId(paths(), system).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(UserError)
    for (const part of [
      paths().nodeId,
      paths().walNodeId,
      'are missing',
      'GET /v1/nodes',
      '--adopt',
      'as a new node',
      'commits again',
    ])
      expect((error as Error).message).toContain(part)
    await expect(readFile(paths().nodeId, 'utf8')).rejects.toThrow('ENOENT')
  })

  test('is refused under the id of this node, which may be another', async () => {
    await given(a, undefined, 'salt-key')
    await expect(readOrCreateNodeId(paths(), system)).rejects.toThrow(
      `node-id is missing. Start once with --adopt to continue as node ${a}`,
    )
  })

  test.each(['', 'garbage'])('is refused with an id that is %j, without the advice to delete it', async (own) => {
    await given(own, undefined, 'salt-key')
    const error = await readOrCreateNodeId(paths(), system).catch((thrown: unknown) => thrown)
    expect((error as Error).message).toContain('--adopt')
    expect((error as Error).message).not.toContain('delete it')
  })

  test.each([undefined, '', 'garbage'])('is taken over as a new node by --adopt, with the id %j', async (own) => {
    await given(own, undefined, 'salt-key')
    await adoptWal(paths(), system, logger)
    const id = await readOrCreateNodeId(paths(), system)
    expect(await readFile(paths().walNodeId, 'utf8')).toBe(`${id}\n`)
  })

  test('gets the id of this node by --adopt', async () => {
    await given(a, undefined, 'salt-key')
    await adoptWal(paths(), system, logger)
    expect(await readOrCreateNodeId(paths(), system)).toBe(a)
  })

  test('an empty directory of a mounted file system was not written before', async () => {
    await given(undefined, undefined, 'lost+found')
    expect(await readOrCreateNodeId(paths(), system)).toMatch(/^[0-9a-f-]{36}$/)
  })
})

describe('--adopt', () => {
  test.each<[string, string | undefined, string | undefined, string]>([
    ['a lost id', undefined, b, b],
    ['the log of another node', a, b, b],
    ['an empty id', '', b, b],
    ['an empty id of the log', a, '', a],
    ['nothing to adopt', a, a, a],
  ])('with %s: continues under the id of the log', async (_, own, owner, expected) => {
    await given(own, owner)
    await adoptWal(paths(), system, logger)
    expect(await readOrCreateNodeId(paths(), system)).toBe(expected)
  })

  test('on a new node changes nothing', async () => {
    await adoptWal(paths(), system, logger)
    expect(await readOrCreateNodeId(paths(), system)).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('is refused while ingest or delivery run', async () => {
    await given(a, b)
    for (const path of [paths().ingestLock, paths().deliveryLock]) {
      using _held = lockExclusively(path)
      await expect(adoptWal(paths(), system, logger)).rejects.toThrow('is locked by another process')
    }
  })
})
