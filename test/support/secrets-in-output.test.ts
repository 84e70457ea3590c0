import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { secretsIn, takeLeaks, watchText } from './secrets-in-output.ts'

const key = `ing_live_${'k'.repeat(32)}`
const jwt = `${Buffer.from('{"alg":"EdDSA"}').toString('base64url')}.${Buffer.from('{"sub":"a key"}').toString('base64url')}.${'s'.repeat(43)}`

test.each([
  ['an API key', `KEY=${key}`],
  ['a JWT', `{"access_token":"${jwt}"}`],
  ['a private key', '-----BEGIN PRIVATE KEY-----'],
  ['a signed link', `http://inlet/objects/a?expires=1&signature=${'0a'.repeat(32)}`],
])('%s is recognised by its form', (name, output) => {
  expect(secretsIn(`first line\n${output}\n`)).toEqual([name])
})

test('prefixes, ids, digests and placeholders are no secrets', () => {
  for (const output of [
    'ing_live_kkkk…',
    'ing_live_…',
    '4f8c1f0e-6a53-4c0e-9d3b-0000000000f1',
    'a'.repeat(64),
    'Bearer <access token>',
  ])
    expect(secretsIn(output), output).toEqual([])
})

const print = 'process.stdout.write(process.argv[1] ?? process.env.AWS_SECRET_ACCESS_KEY); process.stderr.write("done")'

test('the output of each child process is read, and its reader still gets it', async () => {
  const child = spawn(process.execPath, ['-e', print, 'hello'], { env: { INLET_NODE_TOKEN: 'hello-hello' } })
  const [said] = await Promise.all([text(child.stdout), once(child, 'close')])
  expect([said, takeLeaks()]).toEqual(['hello', []])

  const { stdout } = await promisify(execFile)(process.execPath, ['-e', print, key])
  const leaks = takeLeaks()
  expect(stdout).toBe(key)
  expect(leaks).toEqual([expect.stringContaining('printed an API key')])

  await once(spawn(process.execPath, ['-e', `process.stderr.write("${jwt}")`]), 'close')
  expect(takeLeaks()).toEqual([expect.stringContaining('printed a JWT')])
})

test('a secret without a form of its own is known from the environment, and from the files of the data directory', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'inlet-output-'))
  try {
    writeFileSync(join(directory, 'operator-token'), 'from-a-file-0123456789\n')
    const env = { AWS_SECRET_ACCESS_KEY: 'a-secret-of-aws', INLET_DATA_DIR: directory }
    await promisify(execFile)(process.execPath, ['-e', print], { env })
    expect(takeLeaks()).toEqual([expect.stringMatching(/printed AWS_SECRET_ACCESS_KEY$/)])
    await promisify(execFile)(process.execPath, ['-e', print, 'from-a-file-0123456789'], { env })
    expect(takeLeaks()).toEqual([expect.stringMatching(/printed operator-token$/)])
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('a log is read, and what it redacts is no finding', () => {
  const logger = createLogger('test', 'debug', undefined, { write: watchText('a log') })
  logger.info({ request: { authorization: `Bearer ${jwt}` }, api_key: key }, 'redacted')
  expect(takeLeaks()).toEqual([])
  logger.info({ url: `/v1/views?key=${key}` }, 'leaked')
  expect(takeLeaks()).toEqual(['a log printed an API key'])
})
