import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readOrMakeNodeToken } from './node-token.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'inlet-node-token-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

test('is made once, long, and for its user only', async () => {
  const path = join(directory, 'data', 'node-token')
  const token = await readOrMakeNodeToken(path)
  expect(token.length).toBeGreaterThanOrEqual(32)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(await readOrMakeNodeToken(path)).toBe(token)
})

test('of many who come at once is the same, and leaves nothing else behind', async () => {
  const path = join(directory, 'node-token')
  const tokens = await Promise.all(Array.from({ length: 20 }, () => readOrMakeNodeToken(path)))
  expect(new Set(tokens).size).toBe(1)
  expect(readdirSync(directory)).toEqual(['node-token'])
})

test('that was cut short is an error, not a short secret', async () => {
  const path = join(directory, 'node-token')
  writeFileSync(path, 'short\n')
  await expect(readOrMakeNodeToken(path)).rejects.toThrow(/holds no node token/)
})
