import { existsSync, readFileSync, statSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readConfig } from '#config/config.ts'
import { systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { until } from '../../../test/support/until.ts'
import { superviseProcesses } from './supervise.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-supervise-'))
})
afterEach(() => rm(directory, { recursive: true }))

/** Runs children with a program of their own: it defines `start`, and knows their `name`. */
async function supervise(body: string, listen: string, { format = 'text' as 'text' | 'json', isTerminal = false } = {}) {
  const program = join(directory, 'program.mjs')
  await writeFile(
    program,
    `const name = process.argv[2]\nprocess.on('message', ({ type }) => type === 'stop' ? process.exit(0) : start())\n${body}`,
  )
  const printed: string[] = []
  const logged: object[] = []
  const logger = createLogger('test', 'silent')
  logger.info = (fields: object) => void logged.push(fields)
  const app = await superviseProcesses({
    config: readConfig({
      INLET_DATA_DIR: directory,
      INLET_CONTROL_LISTEN: listen,
      INLET_INGEST_LISTEN: listen,
      INLET_LOG_FORMAT: format,
    }),
    environment: {},
    program,
    children: ['control', 'delivery', 'ingest'],
    print: (text) => printed.push(text),
    isTerminal,
    paint: (_, text) => text,
    clock: systemClock,
    logger,
  })
  return { app, printed, logged }
}

test('a failed start says why, and prints a new API key, but no banner: another Inlet may respond there', async () => {
  const other = createServer((_, response) => response.end())
  const port = await listenOnAnyPort(other)
  const { app, printed } = await supervise(
    `
    function start() {
      const said = name === 'ingest' ? { type: 'failed', reason: 'the certificate is damaged' } : { type: 'ready' }
      if (name === 'control') process.send({ type: 'bootstrapped', api_key: 'ing_live_x', endpoint_id: 'e', segment_max_age_seconds: 5 })
      process.send(said, () => name === 'ingest' && process.exit(1))
    }`,
    `127.0.0.1:${port}`,
  )
  expect(await app.failed).toMatchObject({ message: 'the certificate is damaged' })
  await app.stop(AbortSignal.timeout(5_000))
  expect(printed).toEqual([`The first API key is in this file: ${keyPath()}`])
  expect(readFileSync(keyPath(), 'utf8')).toBe('ing_live_x\n')
  expect(statSync(keyPath()).mode & 0o777).toBe(0o600)
  other.close()
})

test('a failed start keeps the API key that control created after another process had failed', async () => {
  const { app, printed } = await supervise(
    `
    const first = { type: 'bootstrapped', api_key: 'ing_live_x', endpoint_id: 'e', segment_max_age_seconds: 5 }
    function start() {}
    if (name === 'control') process.prependListener('message', ({ type }) => type === 'stop' && process.send(first))
    if (name === 'ingest') process.send({ type: 'failed', reason: 'a package is missing' }, () => process.exit(1))`,
    '127.0.0.1:0',
  )
  expect(await app.failed).toMatchObject({ message: 'a package is missing' })
  await app.stop(AbortSignal.timeout(5_000))
  expect(printed).toEqual([`The first API key is in this file: ${keyPath()}`])
  expect(readFileSync(keyPath(), 'utf8')).toBe('ing_live_x\n')
})

test('a start that is stopped before the banner prints a new API key to a terminal', async () => {
  const marked = join(directory, 'bootstrapped')
  const { app, printed } = await supervise(
    `
    import { writeFileSync } from 'node:fs'
    function start() {
      const bootstrapped = { type: 'bootstrapped', api_key: 'ing_live_x', endpoint_id: 'e', segment_max_age_seconds: 5 }
      process.send(bootstrapped, () => writeFileSync(${JSON.stringify(marked)}, ''))
    }`,
    '127.0.0.1:0',
    { isTerminal: true },
  )
  await until('the first account', () => existsSync(marked))
  await app.stop(AbortSignal.timeout(5_000))
  expect(printed).toEqual(['The first API key, which is not shown again: ing_live_x'])
  expect(existsSync(keyPath())).toBe(false)
})

test('with a log of JSON the banner is a log line, and the path of the key a line of JSON', async () => {
  const server = createServer((_, response) => response.end())
  const port = await listenOnAnyPort(server)
  const { app, printed, logged } = await supervise(
    `
    function start() {
      if (name === 'control') process.send({ type: 'bootstrapped', api_key: 'ing_live_x', endpoint_id: 'e', segment_max_age_seconds: 5 })
      process.send({ type: 'ready' })
    }`,
    `127.0.0.1:${port}`,
    { format: 'json' },
  )
  await until('the key', () => printed.length > 0)
  await app.stop(AbortSignal.timeout(5_000))
  expect(printed.map((line) => JSON.parse(line))).toEqual([{ message: expect.any(String), api_key_file: keyPath() }])
  expect(logged).toContainEqual(expect.objectContaining({ ingest: `http://127.0.0.1:${port}/v1/ingest`, first_endpoint: 'e' }))
  expect(JSON.stringify(logged)).not.toContain('ing_live_x')
  server.close()
})

const keyPath = () => join(directory, 'first-api-key')

function listenOnAnyPort(server: Server): Promise<number> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
}
