import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { readOrCreateNodeToken } from './token-files.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'inlet-node-token-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

test('creates a long token once, readable only by its owner', async () => {
  const path = join(directory, 'data', 'node-token')
  const token = await readOrCreateNodeToken(system, path)
  expect(token.length).toBeGreaterThanOrEqual(32)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(await readOrCreateNodeToken(system, path)).toBe(token)
})

test('throws for a truncated token', async () => {
  const path = join(directory, 'node-token')
  writeFileSync(path, 'short\n')
  await expect(readOrCreateNodeToken(system, path)).rejects.toThrow(/is not a node token: it has fewer than 32 characters/)
})
