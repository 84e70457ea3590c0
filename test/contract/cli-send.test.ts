import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { newRegion, useControl } from '../support/control.ts'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { ScriptedProxy } from '../support/scripted-proxy.ts'
import { aCommit } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const program = resolve(import.meta.dirname, '../../src/main.ts')
const directory = mkdtempSync(join(tmpdir(), 'inlet-send-'))
const control = useControl()
afterAll(() => rmSync(directory, { recursive: true }))

function fileOf(content: string): string {
  const path = join(directory, `${Math.random()}.ndjson`)
  writeFileSync(path, content)
  return path
}

const linesOf = (count: number) => Array.from({ length: count }, (_, n) => JSON.stringify({ n, text: 'x'.repeat(200) }))

async function newTarget() {
  const endpoint = anEndpoint()
  const node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }) })
  const proxy = await ScriptedProxy.start(node.url)
  const environment = { INLET_INGEST_URL: proxy.url, INLET_API_KEY: secretOf('a') }
  return {
    ...{ node, proxy, endpoint: endpoint.id, environment },
    send: (...args: readonly string[]) => runCli(['send', ...args], { environment }),
    stored: async () => (await node.stored(endpoint.id)).flatMap(({ payload }) => payload.toString().trimEnd().split('\n')),
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]()
      await node[Symbol.asyncDispose]()
    },
  }
}

/** Runs the command with a pipe for its input. */
function pipeInto(args: readonly string[], environment: Record<string, string>) {
  const env = { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...environment }
  const child = spawn(process.execPath, [program, 'send', ...args], { env })
  const code = new Promise<number | null>((done) => child.on('close', done))
  return {
    child,
    ended: Promise.all([text(child.stdout), text(child.stderr), code]).then(([out, err, code]) => ({ out, err, code })),
  }
}

describe('inlet send', () => {
  test('sends a file once, however often it is sent', async () => {
    await using target = await newTarget()
    const lines = linesOf(12_000)
    const file = fileOf(`\n${lines.join('\n')}`)
    expect(await target.send(target.endpoint, file)).toEqual({ code: 0, out: '12,000 records stored.\n', err: '' })
    const second = await target.send(target.endpoint, file, '--json')
    const node_id = expect.stringMatching(/./)
    const segments = [{ node_id, segment_seq: 0 }]
    expect(JSON.parse(second.out)).toEqual({
      records: 12_000,
      replayed_records: 12_000,
      bytes_sent: expect.any(Number),
      segments,
    })
    const third = await target.send(target.endpoint, file)
    expect(third.out).toContain('All of them had been stored before; use --again')
    expect(await target.send(target.endpoint, file, '--again')).toMatchObject({ out: '12,000 records stored.\n' })
    expect(await target.stored()).toEqual([...lines, ...lines])
  })

  test('--ack committed ends once all segments are in the bucket, and names their objects', async () => {
    await using target = await newTarget()
    const file = fileOf(linesOf(3).join('\n'))
    expect(await target.send(target.endpoint, file)).toMatchObject({ code: 0, out: '3 records stored.\n' })
    const waiting = target.send(target.endpoint, file, '--ack', 'committed', '--json')
    await until('a question', () => target.node.control.deliveredLookups > 0)
    const [{ node_id }] = JSON.parse((await target.send(target.endpoint, file, '--json')).out).segments
    const commit = aCommit(node_id, target.endpoint, 0)
    target.node.control.commits.push(commit)
    const { code, out } = await waiting
    const keys = [commit.artifacts['parquet']?.key]
    expect([code, JSON.parse(out).segments]).toEqual([0, [{ node_id, segment_seq: 0, commit_id: commit.id, keys }]])
    const again = await target.send(target.endpoint, file, '--ack', 'committed')
    expect(again.out).toContain('They are in the bucket, in 1 object.')
  })

  test('--ack committed ends with an error if that takes too long: the records are stored', async () => {
    await using target = await newTarget()
    const file = fileOf('{"n":1}\n')
    const { code, err } = await target.send(target.endpoint, file, '--ack', 'committed', '--timeout', '1')
    expect([code, err]).toEqual([1, expect.stringContaining('1 record stored.')])
    expect(err).toContain('the records are stored: the commit of their segment')
    expect(await target.send(target.endpoint, file, '--ack', 'twice')).toMatchObject({ code: 2 })
  })

  test('equal batches at different places of a file are all stored', async () => {
    await using target = await newTarget()
    const lines = Array.from({ length: 30_000 }, () => 'x'.repeat(99))
    expect(await target.send(target.endpoint, fileOf(lines.join('\n')))).toMatchObject({ code: 0 })
    expect(await target.stored()).toHaveLength(30_000)
  })

  test('continues after an interruption, and says where it stood', async () => {
    await using target = await newTarget()
    const lines = linesOf(12_000)
    const file = fileOf(lines.join('\n'))
    const forbidden = { type: 'x', title: 'x', status: 403, error: 'account_suspended', detail: 'the account is suspended' }
    target.proxy.script('pass', 'lose-response', 'pass', { status: 403, body: forbidden })
    const first = await target.send(target.endpoint, file)
    expect(first).toMatchObject({ code: 1, out: '' })
    expect(first.err).toMatch(
      /^waiting: no response from http:.+\nthe records from line \d+ on were not acknowledged: the account is suspended\n/,
    )
    expect(first.err).toMatch(/[\d,]+ records stored\. Send the same again to continue/)
    expect(await target.send(target.endpoint, file)).toMatchObject({
      code: 0,
      out: expect.stringContaining('12,000 records stored'),
    })
    expect(await target.stored()).toEqual(lines)
  })

  test('several requests at once store the same', async () => {
    await using target = await newTarget()
    const lines = linesOf(30_000)
    target.proxy.script('pass', 'refuse', 'cut', 'cut-response')
    expect(await target.send(target.endpoint, fileOf(lines.join('\n')), '--parallel', '4')).toMatchObject({ code: 0 })
    expect((await target.stored()).toSorted()).toEqual(lines.toSorted())
  })

  test('a pipe stores its records each time, but with a key once', async () => {
    await using target = await newTarget()
    const run = async (...flags: readonly string[]) => {
      const { child, ended } = pipeInto([target.endpoint, ...flags], target.environment)
      child.stdin.end('{"beat":1}\n{"beat":2}')
      return ended
    }
    for (let count = 0; count < 2; count += 1) expect(await run()).toEqual({ code: 0, out: '2 records stored.\n', err: '' })
    for (let count = 0; count < 2; count += 1) expect(await run('--key', 'k')).toMatchObject({ code: 0 })
    expect(await target.stored()).toHaveLength(6)
  })

  test('a slow pipe does not wait for more, and an interruption ends it', async () => {
    await using target = await newTarget()
    const { child, ended } = pipeInto([target.endpoint, '-'], target.environment)
    child.stdin.write('{"n":1}\n{"n":')
    await until('the first record', () => target.proxy.seen.length === 1)
    child.stdin.write('2}\n')
    await until('the second record', () => target.proxy.seen.length === 2)
    child.kill('SIGINT')
    const { code, err } = await ended
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/^interrupted\n[12] records? stored\. Not all/) })
    expect(await target.stored()).toEqual(['{"n":1}', '{"n":2}'])
  })

  test('a pipe that has a name is one, too', async () => {
    await using target = await newTarget()
    const script = `exec '${process.execPath}' '${program}' send "$0" <(echo '{"n":1}'; read -r -t 60 _ < "$1"; echo '{"n":2}')`
    for (let run = 1; run <= 2; run += 1) {
      const gate = join(directory, `gate-${run}`)
      execFileSync('mkfifo', [gate])
      const env = { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...target.environment }
      const child = spawn('bash', ['-c', script, target.endpoint, gate], { env })
      const ended = new Promise((done) => child.on('close', done))
      await until('the first record', () => target.proxy.seen.length === 2 * run - 1)
      writeFileSync(gate, '\n')
      expect(await ended).toBe(0)
    }
    expect(await target.stored()).toEqual(['{"n":1}', '{"n":2}', '{"n":1}', '{"n":2}'])
  })

  test('a failure ends it although the pipe stays open', async () => {
    await using target = await newTarget()
    const revoked = { type: 'x', title: 'x', status: 401, error: 'unauthorized', detail: 'the key is revoked' }
    target.proxy.script({ status: 401, body: revoked })
    const refused = pipeInto([target.endpoint], target.environment)
    refused.child.stdin.write('{}\n')
    const message =
      'the records from line 1 on were not acknowledged: the key is revoked\n0 records stored. Not all of the input was sent.\n'
    expect(await refused.ended).toEqual({ code: 1, out: '', err: message })
    const endless = pipeInto([target.endpoint], target.environment)
    endless.child.stdin.on('error', () => undefined).write('x'.repeat(2_000_000))
    expect(await endless.ended).toMatchObject({ code: 1, err: expect.stringContaining('line 1 is longer than 1 MiB') })
    expect(await target.stored()).toEqual([])
  })

  test('a compressed file is refused, and nothing of it is stored', async () => {
    await using target = await newTarget()
    const path = join(directory, 'events.ndjson.gz')
    writeFileSync(path, gzipSync(linesOf(1_000).join('\n')))
    const refused = await target.send(target.endpoint, path)
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('is compressed with gzip: decompress it') })
    expect(await target.stored()).toEqual([])
  })

  test('a line that is too long is named, and what precedes it is stored', async () => {
    await using target = await newTarget()
    const done = await target.send(target.endpoint, fileOf(`a\nb\n${'c'.repeat(2_000_000)}\nd\n`))
    expect(done).toMatchObject({ code: 1, err: expect.stringContaining('line 3 is longer than 1 MiB') })
    expect(done.err).toContain('2 records stored')
    expect(await target.stored()).toEqual(['a', 'b'])
  })

  test.each([
    [['x', 'nowhere.ndjson'], 1, 'there is no file nowhere.ndjson'],
    [['x', tmpdir()], 1, 'is a directory'],
    [['x', program, '--again', '--key', 'k'], 2, '--again and --key exclude each other'],
    [[], 2, 'missing argument: ENDPOINT'],
    [['x', program, '--parallel', '0'], 2, 'must be a whole number from 1 to 64'],
  ])('bad use: %j', async (args, code, message) => {
    const environment = { INLET_API_KEY: 'ing_live_x' }
    expect(await runCli(['send', ...args], { environment })).toMatchObject({ code, err: expect.stringContaining(message) })
  })

  test('without a key, or with a wrong name, it says what to do', async () => {
    const file = fileOf('{}\n')
    expect(await runCli(['send', 'x', file])).toMatchObject({ code: 1, err: expect.stringContaining('set INLET_API_KEY') })
    const account = await control().newAccount(['ingest'])
    const environment = { INLET_URL: control().url, INLET_API_KEY: account.api_key }
    const send = (name: string) => runCli(['send', name, file], { environment })
    const admin = await control().newAccount()
    const ofAdmin = { INLET_URL: control().url, INLET_API_KEY: admin.api_key }
    await admin.post('/v1/endpoints', { region: newRegion(), name: 'meters' })
    expect(await send('meters')).toMatchObject({ code: 1, err: expect.stringContaining('there is no endpoint meters') })
    const other = (name: string) => runCli(['send', name, file], { environment: ofAdmin })
    expect(await other('metres')).toMatchObject({ code: 1, err: expect.stringContaining('did you mean meters?') })
  })
})
