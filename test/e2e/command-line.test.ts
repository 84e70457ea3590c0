/** Commands that call an Inlet over HTTP: records are sent, appear in the tail, and are queried. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { useDeployment } from '../support/deployment.ts'
import { isThorough } from '../support/thorough.ts'
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

const orders = {
  name: 'orders',
  definition: {
    columns: [
      { name: 'id', type: 'BIGINT', path: '$.id', required: true },
      { name: 'amount', type: 'DECIMAL(12,2)', path: '$.amount' },
      { name: 'note', type: 'VARCHAR', path: '$.note' },
    ],
  },
}

describe('inlet query', () => {
  test('runs SQL over delivered views and records', async () => {
    const { id, viewName } = await deployment().endpoint({ bucket: 'queried', view: orders })
    const rows = Array.from({ length: 500 }, (_, n) => `{"id":${n},"amount":"${n}.50","note":"a, \\"${n}\\""}`)
    await send(id, rows.slice(0, 200))
    await send(id, [...rows.slice(200), 'no JSON'])
    const all = await inlet('query', `SELECT count(*) AS n, sum(amount) AS total, max(id) AS "last one" FROM ${viewName}`)
    expect(all).toEqual({ code: 0, err: '', out: 'n,total,last one\n500,125000.00,499\n' })
    const one = await inlet('query', `SELECT * FROM ${viewName}.v1 WHERE id = 7`)
    expect(one.out).toBe('id,amount,note\n7,7.50,"a, ""7"""\n')
    const json = await inlet('query', `SELECT id, amount, NULL AS "a b" FROM ${viewName} ORDER BY id DESC LIMIT 2`, '--json')
    expect(json.out).toBe('{"id":"499","amount":"499.50","a b":null}\n{"id":"498","amount":"498.50","a b":null}\n')
    const raw = await inlet('query', `SELECT payload FROM raw."${id}" WHERE NOT json_valid(payload)`)
    expect(raw.out).toBe('payload\nno JSON\n')
    const joined = `SELECT count(*) AS n FROM ${viewName} JOIN raw."${id}" AS r ON r.payload->>'$.id' = ${viewName}.id::VARCHAR`
    expect(await inlet('query', joined)).toMatchObject({ code: 1, err: expect.stringContaining('Malformed JSON') })
    expect((await inlet('query', "SELECT 1 AS x, '' AS e")).out).toBe('x,e\n1,""\n')
  })

  test.each([
    ['query', '--json', "SELECT repeat('x', 1000) AS x FROM range(10000000)"],
    ['query', "SELECT repeat('x', 1000) AS x FROM range(10000000)"],
  ])('%s %s ends early, without an error, if nobody reads it', async (...args) => {
    const { child, output, ended } = follow(...args)
    await until('the first rows', () => output.out !== '', 30_000)
    child.stdout.destroy()
    expect({ code: await ended, err: output.err }).toEqual({ code: 0, err: '' })
  })

  test.runIf(isThorough)('reads files in a range of time, of one endpoint, and keeps them if asked to', async () => {
    const { id, viewName } = await deployment().endpoint({ bucket: 'ranges', view: orders })
    await send(id, ['{"id":1}'])
    const between = new Date().toISOString()
    await send(id, ['{"id":2}'])
    const ids = async (...flags: readonly string[]) =>
      (await inlet('query', `SELECT id FROM ${viewName} ORDER BY id`, ...flags)).out
    expect(await ids('--since', between)).toBe('id\n2\n')
    expect(await ids('--until', between)).toBe('id\n1\n')
    expect(await ids('--since', '1h', '--endpoint', id)).toBe('id\n1\n2\n')
    expect(await ids('--until', '7d')).toBe('id\n')
    const cache = join(directory, 'cache')
    expect(await ids('--cache', cache)).toBe('id\n1\n2\n')
    const kept = readdirSync(cache)
    expect(kept).toHaveLength(2)
    const first = kept.map((name) => statSync(join(cache, name)).mtimeMs)
    expect(await ids('--cache', cache)).toBe('id\n1\n2\n')
    expect(kept.map((name) => statSync(join(cache, name)).mtimeMs)).toEqual(first)
    // A flipped bit in a kept file: it is fetched again.
    const [path = ''] = kept.map((name) => join(cache, name))
    const intact = readFileSync(path)
    writeFileSync(path, intact.with(100, (intact[100] ?? 0) ^ 1))
    expect(await ids('--cache', cache)).toBe('id\n1\n2\n')
    expect(readFileSync(path)).toEqual(intact)
  })

  test.runIf(isThorough)('says what is wrong with a statement, and where', async () => {
    const { id, viewName } = await deployment().endpoint({ bucket: 'mistakes', view: orders })
    await send(id, ['{"id":1}'])
    const cases: readonly (readonly [readonly string[], number, string])[] = [
      [[`SELECT nope FROM ${viewName}`], 1, 'line 1, column 8:'],
      [['SELEC 1'], 1, 'line 1, column 1: syntax error'],
      [['DELETE FROM x'], 1, 'one SELECT statement'],
      [[`SELECT * FROM '/etc/passwd'`], 1, 'there is no table /etc/passwd'],
      [[`SELECT * FROM ${viewName.slice(0, -1)}`], 1, `did you mean ${viewName}?`],
      [[`SELECT * FROM ${viewName}.v9`], 1, `there is no table ${viewName}.v9`],
      [['SELECT * FROM raw.nowhere'], 1, 'there is no table raw.nowhere'],
      [[`SELECT * FROM ${viewName}`, '--fetch', '0MB'], 1, 'choose a time with --since'],
      [['SELECT 1', '--since', 'yesterday'], 2, '--since: must be a time'],
      [['SELECT 1', '--csv', '--json'], 2, '--json and --csv exclude each other'],
      [['SELECT 1', '--endpoint', 'nowhere'], 1, 'there is no endpoint nowhere'],
    ]
    for (const [args, code, message] of cases)
      expect(await inlet('query', ...args)).toMatchObject({ code, out: '', err: expect.stringContaining(message) })
  })
})
