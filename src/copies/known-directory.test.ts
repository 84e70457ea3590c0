/** A directory of copies that this machine knows again. */
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { KnownDirectory } from './known-directory.ts'

let directory: string
let root: string
let rememberedAt: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'inlet-known-'))
  root = join(directory, 'mount')
  rememberedAt = join(directory, 'node', 'copy-store')
})
afterEach(() => rmSync(directory, { recursive: true }))

const open = (at = root) => new KnownDirectory(system, at, rememberedAt)

test('an empty or missing directory at its path is refused, also by a later process, until it is back', async () => {
  const known = open()
  await known.verify()
  const away = join(directory, 'away')
  renameSync(root, away)
  for (const empty of [false, true]) {
    if (empty) mkdirSync(root)
    for (const one of [known, open()]) await expect(one.verify()).rejects.toThrow(`is not the directory that this node used`)
  }
  rmSync(root, { recursive: true })
  renameSync(away, root)
  await known.verify()
  await open().verify()
})

test('nodes share a directory, and another path is another store', async () => {
  await open().verify()
  const other = new KnownDirectory(system, root, join(directory, 'other-node', 'copy-store'))
  await other.verify()
  await open(join(directory, 'elsewhere')).verify()
  expect(readFileSync(rememberedAt, 'utf8')).toContain('elsewhere')
})

test('a damaged memory is written again', async () => {
  await open().verify()
  const written = readFileSync(rememberedAt, 'utf8')
  writeFileSync(rememberedAt, 'x')
  await open().verify()
  expect(readFileSync(rememberedAt, 'utf8')).toBe(written)
})
