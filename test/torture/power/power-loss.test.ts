import { existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Files, systemFiles, writeDurably } from '#lib/files.ts'
import { overriding } from '../child/overriding.ts'
import { Random } from '../random.ts'
import { losePower } from './power-loss.ts'
import { recordingFiles } from './recording-files.ts'

let root: string
let data: string
let files: Files

/** The replay does not depend on real syncs, which are slow. */
const quickFiles: Files = {
  ...systemFiles,
  syncDirectory: () => Promise.resolve(),
  open: async (path, mode) => overriding(await systemFiles.open(path, mode), { sync: () => Promise.resolve() }),
}

/** Returns the files of another process. */
function startProcess(base = quickFiles): Files {
  const journal = join(root, 'journal', String(readdirSync(join(root, 'journal')).length))
  return recordingFiles(base, { journal, graveyard: join(root, 'graveyard'), covers: (path) => path.startsWith(`${data}/`) })
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'inlet-power-'))
  data = join(root, 'data')
  reset()
})

afterEach(() => rmSync(root, { recursive: true, force: true }))

function reset(): void {
  rmSync(root, { recursive: true, force: true })
  for (const folder of ['', 'data', 'graveyard', 'journal']) mkdirSync(join(root, folder))
  files = startProcess()
}

const path = (name: string) => join(data, name)

function cut(seed: number): void {
  const journals = readdirSync(join(root, 'journal')).map((name) => join(root, 'journal', name))
  losePower({ directory: data, covers: (path) => !path.endsWith('.foreign') }, journals, new Random(seed))
}

/** Repeats the steps and cuts the power with other seeds. Returns the different outcomes. */
async function outcomes(steps: () => Promise<void>, look: () => string, seeds = 24): Promise<ReadonlySet<string>> {
  const seen = new Set<string>()
  for (let seed = 1; seed <= seeds; seed += 1) {
    reset()
    await steps()
    cut(seed)
    seen.add(look())
  }
  return seen
}

const content = (name: string) => (existsSync(path(name)) ? readFileSync(path(name), 'latin1') : 'missing')

test('what was synced stays', async () => {
  const seen = await outcomes(
    () => writeDurably(files, path('a'), Buffer.from('durable')),
    () => content('a'),
  )
  expect(seen).toEqual(new Set(['durable']))
})

test('bytes that were not synced are kept or lost by sector, and the size with them', async () => {
  const sector = (letter: string) => Buffer.from(letter.repeat(512))
  const seen = await outcomes(
    async () => {
      const file = await files.open(path('a'), 'create')
      await files.syncDirectory(data)
      await file.write([sector('A')], 0)
      await file.sync()
      await file.write([sector('B'), sector('C'), sector('D')], 512)
      await file.close()
    },
    () => content('a'),
    60,
  )
  const shapes = new Set([...seen].map((bytes) => bytes.replaceAll('\0', '.').replace(/(.)\1*/g, '$1')))
  for (const bytes of seen) expect(bytes.startsWith('A'.repeat(512))).toBe(true)
  expect(shapes).toContain('A')
  expect(shapes).toContain('ABCD')
  expect([...shapes].some((shape) => shape.includes('.') && /[BCD]/.test(shape))).toBe(true)
})

test('overwritten and truncated bytes may come back', async () => {
  const seen = await outcomes(
    async () => {
      await writeDurably(files, path('a'), Buffer.from('before'))
      const file = await files.open(path('a'), 'update')
      await file.truncate(2)
      await file.write([Buffer.from('XY')], 0)
      await file.close()
    },
    () => content('a'),
    40,
  )
  expect(seen).toContain('before')
  expect(seen).toContain('XY')
})

test('a new name is lost without a directory fsync, whatever was synced in the file', async () => {
  const seen = await outcomes(
    async () => {
      const file = await files.open(path('a'), 'create')
      await file.write([Buffer.from('x')], 0)
      await file.sync()
      await file.close()
    },
    () => content('a'),
  )
  expect(seen).toEqual(new Set(['missing', 'x']))
})

test('a renamed, replaced or removed file comes back without a directory fsync', async () => {
  const seen = await outcomes(
    async () => {
      for (const name of ['old', 'new', 'gone']) await writeDurably(files, path(name), Buffer.from(name))
      await files.rename(path('new'), path('old'))
      await files.remove(path('gone'))
    },
    () => `${content('old')} ${content('new')} ${content('gone')}`,
  )
  expect(seen).toEqual(new Set(['old new gone', 'old new missing', 'new missing gone', 'new missing missing']))
})

test('changes of one name keep their order', async () => {
  const seen = await outcomes(
    async () => {
      const file = await files.open(path('a.open'), 'create')
      await file.close()
      await files.rename(path('a.open'), path('a.wal'))
      await files.remove(path('a.wal'))
    },
    () => readdirSync(data).join(),
  )
  expect(seen).toEqual(new Set(['', 'a.open', 'a.wal']))
})

test('a directory is lost with everything in it, if another call found it and did not sync its parent', async () => {
  const seen = await outcomes(
    async () => {
      // Killed between making the directory and syncing its parent.
      const killed = startProcess({ ...quickFiles, makeDirectory: async (made) => void mkdirSync(made) })
      await killed.makeDirectory(path('logs'))
      await writeDurably(files, path('logs/a'), Buffer.from('x'))
    },
    () => readdirSync(data, { recursive: true, encoding: 'utf8' }).toSorted().join(),
  )
  expect(seen).toEqual(new Set(['', 'logs,logs/a']))
})

test('a file that was not journaled keeps its bytes, though it has the inode of one that was', async () => {
  const file = await files.open(path('a'), 'create')
  await file.write([Buffer.from('x'.repeat(2_000))], 0)
  await file.close()
  linkSync(path('a'), path('b.foreign'))
  rmSync(path('a'))
  for (const seed of [1, 2, 3]) cut(seed)
  expect(content('b.foreign')).toBe('x'.repeat(2_000))
})

test('an announced change that its process did not live to make is not taken back', async () => {
  await writeDurably(files, path('a'), Buffer.from('first'))
  await files.remove(path('a'))
  // As if the process had been killed between the entry and the effect.
  const [grave = ''] = readdirSync(join(root, 'graveyard'))
  linkSync(join(root, 'graveyard', grave), path('a'))
  for (const seed of [1, 2, 3]) cut(seed)
  expect(content('a')).toBe('first')
})
