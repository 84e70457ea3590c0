import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemFiles } from './files.ts'
import { readOrCreate } from './read-or-create.ts'

let directory = ''

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-read-or-create-'))
})
afterEach(() => rm(directory, { recursive: true }))

test('the file is created once, and drafts that a kill left are removed with it', async () => {
  const path = join(directory, 'secret-key')
  await writeFile(`${path}.4711-0badcafe.tmp`, 'a secret that nobody uses\n')
  await writeFile(join(directory, 'other.4711-0badcafe.tmp'), '')
  let drafts = 0
  const texts = await Promise.all(Array.from({ length: 20 }, () => readOrCreate(systemFiles, path, () => `secret ${drafts++}`)))
  expect(new Set(texts).size).toBe(1)
  expect(await readdir(directory)).toEqual(['other.4711-0badcafe.tmp', 'secret-key'])
})
