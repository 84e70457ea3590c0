/**
 * Writes openapi/openapi.json as the control process serves it, the JSON Schema of set-ups, and the types and operations of the client, whose
 * types the console uses too. With `--check` it only fails if they are out of date.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { startControl } from '#control/app.ts'
import { systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { setupJsonSchema } from '#model/setup.ts'
import { readConfig } from '../src/config/config.ts'
import { operationsOf } from './openapi-operations.ts'
import { typesOf } from './openapi-types.ts'

const root = resolve(import.meta.dirname, '..')
const json = await describeApi()

for (const [name, text] of [
  ['openapi/openapi.json', `${JSON.stringify(JSON.parse(json), null, 2)}\n`],
  ['openapi/setup.schema.json', `${JSON.stringify(setupJsonSchema(), null, 2)}\n`],
  ['src/client/generated/schema.ts', typesOf(JSON.parse(json))],
  ['src/client/generated/operations.ts', operationsOf(JSON.parse(json))],
] as const) {
  const target = join(root, name)
  if (!process.argv.includes('--check')) {
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, text)
  } else if (read(target) !== text) {
    console.error(`${name} is out of date: run \`npm run openapi\` and commit it`)
    process.exitCode = 1
  }
}

async function describeApi(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'inlet-openapi-'))
  try {
    const config = readConfig({
      INLET_DATA_DIR: directory,
      INLET_CONTROL_LISTEN: '127.0.0.1:0',
      INLET_NODE_API_LISTEN: '127.0.0.1:0',
      INLET_BASE_URL: 'http://127.0.0.1:8080',
    })
    const logger = createLogger('openapi', 'error')
    const app = await startControl(config, { logger, clock: systemClock, onBootstrap: () => undefined })
    const text = await (await fetch(`${app.url}/openapi/openapi.json`)).text()
    await app.stop(AbortSignal.timeout(5_000))
    return text
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
