/** Commands that call an Inlet over HTTP: records are sent, appear in the tail, and are queried. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { useDeployment } from '../support/deployment.ts'
import { until } from '../support/until.ts'

const program = resolve(import.meta.dirname, '../../src/main.ts')
const directory = mkdtempSync(join(tmpdir(), 'inlet-cli-'))
const deployment = useDeployment()
afterAll(() => rmSync(directory, { recursive: true }))

const environment = () => ({ INLET_URL: deployment().apiUrl, INLET_API_KEY: deployment().apiKey })

/** Runs a command to its end. */
async function inlet(...args: readonly string[]) {
  const { output, ended } = follow(...args)
  const code = await ended
  return { code, ...output }
}

/** Sends records with `inlet send`, and waits until they are delivered. */
async function send(endpoint: string, records: readonly string[]): Promise<void> {
  const file = join(directory, `${Math.random()}.ndjson`)
  writeFileSync(file, records.join('\n'))
  const sent = await inlet('send', endpoint, file, '--json')
  expect(sent).toMatchObject({ code: 0, err: '' })
  const { segments } = JSON.parse(sent.out) as { segments: { segment_seq: number }[] }
  await deployment().committed(
    endpoint,
    segments.map(({ segment_seq }) => segment_seq),
  )
}

/** Runs a command until it is interrupted. */
function follow(...args: readonly string[]) {
  const env = { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...environment() }
  const child = spawn(process.execPath, [program, ...args], { env })
  const output = { out: '', err: '' }
  child.stdout.on('data', (text) => (output.out += text))
  child.stderr.on('data', (text) => (output.err += text))
  const ended = new Promise<number | null>((done) => child.on('close', done))
  return { child, output, ended }
}

test('inlet tail shows the latest records, then new ones in their order, until it is interrupted', async () => {
  const { id } = await deployment().endpoint({ bucket: 'tailed' })
  await send(
    id,
    Array.from({ length: 15 }, (_, n) => `{"old":${n}}`),
  )
  const latest = await inlet('tail', id, '--no-follow', '--lines', '3')
  expect(latest).toEqual({ code: 0, err: '', out: '{"old":12}\n{"old":13}\n{"old":14}\n' })
  const json = await inlet('tail', id, '--no-follow', '--json', '--contains', '"old":7')
  expect(JSON.parse(json.out)).toMatchObject({ record: '{"old":7}', protocol: 'http', record_index: 7 })

  const { child, output, ended } = follow('tail', id, '--lines', '2', '--interval', '1')
  await until('the latest records', () => output.out === '{"old":13}\n{"old":14}\n', 30_000)
  await send(
    id,
    Array.from({ length: 130 }, (_, n) => `{"new":${n}}`),
  )
  const shown = Array.from({ length: 100 }, (_, n) => `{"new":${n + 30}}\n`).join('')
  await until('the new records', () => output.out.endsWith(shown), 30_000)
  await send(id, ['{"last":"\u001b[31m"}'])
  await until('the last record', () => output.out.endsWith('{"last":" [31m"}\n'), 30_000)
  child.kill('SIGINT')
  expect(await ended).toBe(0)
  expect(output.out).toBe(`{"old":13}\n{"old":14}\n${shown}{"last":" [31m"}\n`)
  expect(output.err).toMatch(/^30 earlier records of segment \d+ are not shown: inlet query has them\n$/)
})

test('inlet tail of an endpoint without records, or without raw Parquet, says so', async () => {
  const { id } = await deployment().endpoint({ bucket: 'tail-of-views', output_formats: ['segments'] })
  expect(await inlet('tail', id, '--no-follow')).toEqual({ code: 0, out: '', err: '' })
  await send(id, ['{}'])
  const refused = await inlet('tail', id, '--no-follow')
  expect(refused).toMatchObject({ code: 1, out: '', err: expect.stringContaining('add parquet to output_formats') })
})
