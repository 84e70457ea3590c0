/**
 * Lets schemathesis test the management API against its OpenAPI description, with all checks: `npm run fuzz-api [-- options of schemathesis]`.
 *
 * It starts an Inlet of its own on free ports, with a data directory that is removed at the end. `INLET_SCHEMATHESIS` is the path of
 * schemathesis, if it is not in PATH. tools/schemathesis.toml says which findings are false, and why.
 * All checks are on unless that file turns them off: `--checks` would override it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const schemathesis = process.env['INLET_SCHEMATHESIS'] ?? 'schemathesis'
const readyMs = 60_000

const directory = mkdtempSync(join(tmpdir(), 'inlet-fuzz-'))
const [control, ingest, nodes] = [await freePort(), await freePort(), await freePort()]
const url = `http://127.0.0.1:${control}`
const apiKey = `ing_live_${randomBytes(16).toString('hex')}`
const operatorToken = randomBytes(32).toString('hex')
const many = '1000000'

const inlet = spawn(process.execPath, [join(root, 'src/main.ts'), 'start'], {
  stdio: ['ignore', 'ignore', 'inherit'],
  env: {
    PATH: process.env['PATH'],
    INLET_DATA_DIR: directory,
    INLET_CONTROL_LISTEN: `127.0.0.1:${control}`,
    INLET_INGEST_LISTEN: `127.0.0.1:${ingest}`,
    INLET_NODE_API_LISTEN: `127.0.0.1:${nodes}`,
    INLET_BOOTSTRAP_API_KEY: apiKey,
    INLET_OPERATOR_TOKEN: operatorToken,
    INLET_API_REQUESTS_PER_MINUTE: many,
    INLET_EXCHANGE_REQUESTS_PER_MINUTE: many,
    INLET_ADDRESS_REQUESTS_PER_MINUTE: many,
    INLET_LOG_LEVEL: 'error',
  },
})
const ended = once(inlet, 'exit')
// The program that runs ends, and this process cleans up.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => running?.kill(signal))
let running: ChildProcess | undefined
try {
  await untilReady()
  const token = await exchange()
  const codes = [
    await run(token, ['--exclude-by', '/x-scope == operator', '--exclude-operation-id', 'revokeKey']),
    await run(operatorToken, ['--include-by', '/x-scope == operator']),
    // Last: it revokes the key of the token.
    await run(token, ['--include-operation-id', 'revokeKey']),
  ]
  process.exitCode = Math.max(...codes)
} finally {
  inlet.kill('SIGTERM')
  await ended
  rmSync(directory, { recursive: true, force: true })
}

/** Returns the exit code of schemathesis: 0 if it found nothing. */
async function run(token: string, operations: readonly string[]): Promise<number> {
  const options = ['--config-file', join(import.meta.dirname, 'schemathesis.toml')]
  const call = ['run', `${url}/openapi/openapi.json`, '--url', url, '-H', `Authorization: Bearer ${token}`]
  const child = spawn(schemathesis, [...options, ...call, ...operations, ...process.argv.slice(2)], {
    cwd: directory,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  running = child
  const missing = () => [
    console.error(`cannot run ${schemathesis}: pip install schemathesis, and set INLET_SCHEMATHESIS to its path`),
  ]
  const [code] = (await once(child, 'exit').catch(missing)) as [number | null | undefined]
  return code ?? 1
}

async function exchange(): Promise<string> {
  const response = await fetch(`${url}/v1/token/exchange`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ api_key: apiKey, scope: 'admin', ttl: '1h' }),
  })
  const { access_token } = (await response.json()) as { access_token: string }
  return access_token
}

async function untilReady(): Promise<void> {
  const deadline = Date.now() + readyMs
  while (
    !(await fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (inlet.exitCode !== null || Date.now() > deadline) throw new Error('Inlet did not start')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('a TCP server without a port')
  return address.port
}
