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
import { join } from 'node:path'
import { Installation } from '../test/support/installation.ts'

const schemathesis = process.env['INLET_SCHEMATHESIS'] ?? 'schemathesis'
const operatorToken = randomBytes(32).toString('hex')

// The program that runs ends, and this process cleans up.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => running?.kill(signal))
let running: ChildProcess | undefined
await using inlet = await Installation.create({ environment: { INLET_OPERATOR_TOKEN: operatorToken, INLET_LOG_LEVEL: 'error' } })
await inlet.start('start')
const token = await inlet.accessToken()
const codes = [
  await run(token, ['--exclude-by', '/x-scope == operator', '--exclude-operation-id', 'revokeKey']),
  await run(operatorToken, ['--include-by', '/x-scope == operator']),
  // Last: it revokes the key of the token.
  await run(token, ['--include-operation-id', 'revokeKey']),
]
process.exitCode = Math.max(...codes)

/** Returns the exit code of schemathesis: 0 if it found nothing. */
async function run(token: string, operations: readonly string[]): Promise<number> {
  const options = ['--config-file', join(import.meta.dirname, 'schemathesis.toml')]
  const call = ['run', `${inlet.apiUrl}/openapi/openapi.json`, '--url', inlet.apiUrl, '-H', `Authorization: Bearer ${token}`]
  const child = spawn(schemathesis, [...options, ...call, ...operations, ...process.argv.slice(2)], {
    cwd: inlet.directory,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  running = child
  const missing = () => [
    console.error(`cannot run ${schemathesis}: pip install schemathesis, and set INLET_SCHEMATHESIS to its path`),
  ]
  const [code] = (await once(child, 'exit').catch(missing)) as [number | null | undefined]
  return code ?? 1
}
