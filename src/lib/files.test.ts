import { Buffer } from 'node:buffer'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { errorCode, systemFiles as files, writeDurably } from './files.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-files-'))
})
afterEach(() => rm(directory, { recursive: true }))

test('new files and directories are private', async () => {
  await files.makeDirectory(join(directory, 'made/below'))
  await writeDurably(files, join(directory, 'made/file'), Buffer.from('x'))
  const modeOf = async (name: string) => (await stat(join(directory, name))).mode & 0o777
  expect([await modeOf('made'), await modeOf('made/below'), await modeOf('made/file')]).toEqual([0o700, 0o700, 0o600])
})

describe('an open file', () => {
  test.each([
    ['a few bytes, written on the spot', 3, 100],
    ['megabytes, written by the pool', 5, 700_000],
    ['more chunks than one system call takes', 3_000, 7],
    ['many large chunks', 1_500, 1_000],
  ])('takes %s', async (_, count, size) => {
    const chunks = Array.from({ length: count }, (_, index) => Buffer.alloc(size, index))
    chunks.splice(1, 0, Buffer.alloc(0))
    const path = join(directory, 'file')
    const file = await files.open(path, 'create')
    await file.write([Buffer.from('start')], 0)
    await file.write(chunks, 5)
    await file.sync()
    expect(await file.bytes()).toBe(5 + count * size)
    await file.close()
    expect((await readFile(path)).equals(Buffer.concat([Buffer.from('start'), ...chunks]))).toBe(true)
  })

  test('reads up to the end of the file, and truncates it', async () => {
    const file = await files.open(join(directory, 'file'), 'create')
    await file.write([Buffer.from('0123456789')], 0)
    const into = Buffer.alloc(8)
    expect(await file.read(into, 6)).toBe(4)
    expect(into.toString('latin1', 0, 4)).toBe('6789')
    expect(await file.read(into, 10)).toBe(0)
    await file.truncate(3)
    expect(await file.bytes()).toBe(3)
    await file.close()
  })

  test('is created only if it is new, and read only if it exists', async () => {
    const path = join(directory, 'file')
    await (await files.open(path, 'create')).close()
    expect(await code(files.open(path, 'create'))).toBe('EEXIST')
    expect(await code(files.open(join(directory, 'absent'), 'read'))).toBe('ENOENT')
    expect(await code(files.open(join(directory, 'absent'), 'update'))).toBe('ENOENT')
    const reading = await files.open(path, 'read')
    expect(await code(reading.write([Buffer.from('x')], 0))).toBe('EBADF')
    expect(await code(reading.write([Buffer.alloc(1_000_000)], 0))).toBe('EBADF')
    await reading.close()
  })

  test('that is closed is not the next one, which gets its number from the system', async () => {
    const file = await files.open(join(directory, 'file'), 'create')
    await file.close()
    const next = await files.open(join(directory, 'next'), 'create')
    for (const bytes of [1, 1_000_000]) await expect(file.write([Buffer.alloc(bytes)], 0)).rejects.toThrow()
    await expect(file.sync()).rejects.toThrow()
    await file.close()
    expect(await next.bytes()).toBe(0)
    await next.close()
  })
})

describe('names', () => {
  test('missing files and directories are not errors', async () => {
    const absent = join(directory, 'absent')
    expect(await files.read(absent)).toBeUndefined()
    expect(await files.bytes(absent)).toBeUndefined()
    expect(await files.list(absent)).toEqual([])
    await files.remove(absent)
  })

  test('a removal that fails gives the error of the removal itself', async () => {
    const path = join(directory, 'file')
    await writeDurably(files, path, Buffer.from('x'))
    await expect(files.remove(join(path, 'below'))).rejects.toMatchObject({ code: 'ENOTDIR', syscall: 'unlink' })
    await expect(files.remove(directory)).rejects.toMatchObject({ syscall: 'unlink' })
  })

  test('creates directories with their parents', async () => {
    const path = join(directory, 'a', 'b', 'c')
    await files.makeDirectory(path)
    await files.makeDirectory(path)
    expect(await files.list(join(directory, 'a'))).toEqual([{ name: 'b', kind: 'directory' }])
    await files.syncDirectory(path)
  })

  test('reports free space', async () => {
    const { free_bytes, total_bytes } = await files.space(directory)
    expect(free_bytes).toBeGreaterThan(0)
    expect(total_bytes).toBeGreaterThanOrEqual(free_bytes)
  })
})

describe('writeDurably', () => {
  test('creates directories, replaces the file, and leaves no temporary file', async () => {
    const path = join(directory, 'deep', 'er', 'file')
    await writeDurably(files, path, Buffer.from('first'))
    await Promise.all(['second', 'second'].map((text) => writeDurably(files, path, Buffer.from(text))))
    expect((await readFile(path)).toString()).toBe('second')
    expect(await files.list(join(directory, 'deep', 'er'))).toEqual([{ name: 'file', kind: 'file' }])
  })

  test('leaves the old file and no temporary file if it fails', async () => {
    const path = join(directory, 'file')
    await writeDurably(files, path, Buffer.from('old'))
    const failing = { ...files, rename: () => Promise.reject(new Error('no rename today')) }
    await expect(writeDurably(failing, path, Buffer.from('new'))).rejects.toThrow('no rename today')
    expect((await readFile(path)).toString()).toBe('old')
    expect(await files.list(directory)).toEqual([{ name: 'file', kind: 'file' }])
  })
})

async function code(failing: Promise<unknown>): Promise<string | undefined> {
  return await failing.then(
    () => undefined,
    (error: unknown) => errorCode(error),
  )
}
