/** The programs of examples/ that send, against a node behind a proxy that breaks their requests. */
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { ScriptedProxy } from '../support/scripted-proxy.ts'

const examples = resolve(import.meta.dirname, '../../examples')
const isAvailable = (command: string, ...args: readonly string[]) => spawnSync(command, args).status === 0
const directory = mkdtempSync(join(tmpdir(), 'inlet-examples-'))
const goProgram = join(directory, 'send')

const languages = [
  {
    name: 'Python',
    needs: 'python3',
    runs: isAvailable('python3', '--version'),
    command: ['python3', join(examples, 'python/send.py')],
  },
  { name: 'Go', needs: 'go', runs: isAvailable('go', 'version'), command: [goProgram] },
] as const

beforeAll(() => {
  if (!isAvailable('go', 'version')) return
  const env = { ...process.env, GOFLAGS: '-mod=mod', GO111MODULE: 'off', GOTOOLCHAIN: 'local' }
  const build = spawnSync('go', ['build', '-o', goProgram, join(examples, 'go/send.go')], { env, encoding: 'utf8' })
  expect(build.stderr).toBe('')
}, 120_000)
afterAll(() => rmSync(directory, { recursive: true }))

async function run([command, ...args]: readonly string[], environment: Record<string, string>, input: string) {
  const child = spawn(command ?? '', args, { env: { PATH: process.env['PATH'], ...environment } })
  child.stdin.end(input)
  const ended = new Promise<number | null>((done) => child.on('close', done))
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { stdout, stderr, code }
}

for (const { name, needs, runs, command } of languages) {
  describe.skipIf(!runs)(`${name}${runs ? '' : `: ${needs} is not on this machine`}`, () => {
    test('stores every line once, whatever breaks', { timeout: 60_000 }, async () => {
      const endpoint = anEndpoint()
      await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }) })
      await using proxy = await ScriptedProxy.start(node.url)
      const problem = { type: 'x', title: 'x', status: 503, error: 'unavailable', detail: 'wait' }
      proxy.script(
        'refuse',
        'lose-response',
        { status: 503, body: problem, headers: { 'retry-after': '1' } },
        'cut-response',
        'cut',
      )
      const lines = Array.from({ length: 24_000 }, (_, n) => JSON.stringify({ n, noise: randomBytes(60).toString('base64') }))
      const environment = { INLET_INGEST_URL: `${proxy.url}/`, INLET_API_KEY: secretOf('a'), INLET_ENDPOINT: endpoint.id }
      const began = performance.now()
      const done = await run(command, environment, `${lines.slice(0, 100).join('\r\n')}\n\n \n${lines.slice(100).join('\n')}`)
      expect(done).toEqual({ stdout: '24000 records stored\n', stderr: '', code: 0 })
      expect(performance.now() - began).toBeGreaterThan(990)
      const stored = (await node.stored(endpoint.id)).flatMap(({ payload }) => payload.toString().trimEnd().split(/\r?\n/))
      expect(stored).toEqual(lines)
    })

    test('says what is wrong, and does not repeat it', async () => {
      await using node = await IngestNode.start()
      await using proxy = await ScriptedProxy.start(node.url)
      const done = await run(command, { INLET_INGEST_URL: proxy.url, INLET_API_KEY: secretOf('f') }, '{}\n')
      expect(done.code).toBe(1)
      expect(done.stderr).toContain('401')
      expect(proxy.seen).toHaveLength(1)
    })
  })
}
