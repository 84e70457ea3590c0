import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readConfig } from '#config.ts'
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
async function supervise(body: string, listen: string) {
  const program = join(directory, 'program.mjs')
  await writeFile(
    program,
    `const name = process.argv[2]\nprocess.on('message', ({ type }) => type === 'stop' ? process.exit(0) : start())\n${body}`,
  )
  const printed: string[] = []
  const app = await superviseProcesses({
    config: readConfig({ INLET_DATA_DIR: directory, INLET_CONTROL_LISTEN: listen, INLET_INGEST_LISTEN: listen }),
    environment: {},
    program,
    children: ['control', 'delivery', 'ingest'],
    print: (text) => printed.push(text),
    paint: (_, text) => text,
    clock: systemClock,
    logger: createLogger('test', 'silent'),
  })
  return { app, printed }
}

test('a failed start says why, and prints a new API key, but no banner: another Inlet may respond there', async () => {
  const other = createServer((_, response) => response.end())
  const port = await listenOnAnyPort(other)
  const { app, printed } = await supervise(
    `
    function start() {
      const said = name === 'ingest' ? { type: 'failed', reason: 'the certificate is damaged' } : { type: 'ready' }
      if (name === 'control') process.send({ type: 'bootstrapped', api_key: 'ing_live_x', endpoint_id: 'e' })
      process.send(said, () => name === 'ingest' && process.exit(1))
    }`,
    `127.0.0.1:${port}`,
  )
  expect(await app.failed).toMatchObject({ message: 'the certificate is damaged' })
  await app.stop(AbortSignal.timeout(5_000))
  expect(printed).toEqual(['The first API key, which is not shown again: ing_live_x'])
  other.close()
})

test('a start that is stopped before the banner prints a new API key', async () => {
  const marked = join(directory, 'bootstrapped')
  const { app, printed } = await supervise(
    `
    import { writeFileSync } from 'node:fs'
    function start() {
      const bootstrapped = { type: 'bootstrapped', api_key: 'ing_live_x', endpoint_id: 'e' }
      process.send(bootstrapped, () => writeFileSync(${JSON.stringify(marked)}, ''))
    }`,
    '127.0.0.1:0',
  )
  await until('the first account', () => existsSync(marked))
  await app.stop(AbortSignal.timeout(5_000))
  expect(printed).toEqual(['The first API key, which is not shown again: ing_live_x'])
})

function listenOnAnyPort(server: Server): Promise<number> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
}
