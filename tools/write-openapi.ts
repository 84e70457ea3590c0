/** Writes openapi/openapi.json from what a control process answers. `--check` writes nothing, and exits 1 where it differs. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { startControl } from '#control/app.ts'
import { systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { readConfig } from '../src/config.ts'

const target = resolve(import.meta.dirname, '../openapi/openapi.json')
const text = `${JSON.stringify(await describeApi(), null, 2)}\n`

if (!process.argv.includes('--check')) {
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, text)
} else if (read() !== text) {
  console.error('openapi/openapi.json is not what the service answers: run `npm run openapi` and commit it')
  process.exitCode = 1
}

async function describeApi(): Promise<unknown> {
  const directory = mkdtempSync(join(tmpdir(), 'inlet-openapi-'))
  try {
    const config = readConfig({
      INLET_DATA_DIR: directory,
      INLET_CONTROL_LISTEN: '127.0.0.1:0',
      INLET_BASE_URL: 'http://127.0.0.1:8080',
    })
    const logger = createLogger('openapi', 'error')
    const app = await startControl(config, { logger, clock: systemClock, onBootstrap: () => undefined })
    const response = await fetch(`${app.url}/openapi/openapi.json`)
    const description = await response.json()
    await app.stop(AbortSignal.timeout(5_000))
    return description
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function read(): string | undefined {
  try {
    return readFileSync(target, 'utf8')
  } catch {
    return undefined
  }
}
