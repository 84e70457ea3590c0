/** Starts the real components and runs the suites that need them: `npm run test:services [-- vitest options]`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBind } from './services/bind.ts'
import { findChromium } from './services/chromium.ts'
import { startObjectGatewayWithUsers } from './services/gateway-users.ts'
import { startPebble } from './services/pebble.ts'
import { startPostgres } from './services/postgres.ts'

const vitest = join(import.meta.dirname, '..', 'node_modules', 'vitest', 'vitest.mjs')
const args = process.argv.slice(2)
if (args.includes('--help')) {
  console.log(
    'npm run test:services [-- options and files of vitest]\nStarts Postgres, a Ceph gateway, BIND and Pebble, and runs the suites browser, store, contract, names and s3.',
  )
  process.exit(0)
}
const suites = ['browser', 'store', 'contract', 'names', 's3']
const projects = args.includes('--project') ? [] : suites.flatMap((suite) => ['--project', suite])

// A signal ends the tests and their processes. This process stays to clean up.
let interrupted = false
let run: ChildProcess | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    interrupted = true
    endGroup(run, signal)
  })
}

type Started = { readonly environment: Readonly<Record<string, string>>; stop(): Promise<void> }

const scratch = mkdtempSync(join(tmpdir(), 'inlet-tests-'))
// Postgres runs as a different user.
chmodSync(scratch, 0o755)
let components: readonly Started[] = []
try {
  console.log('starting Postgres, the Ceph gateway, BIND and Pebble …')
  // Waits for all even if one fails, so that those that started are stopped.
  const results = await Promise.allSettled([postgres(), objectGateway(), nameServers()])
  components = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  for (const result of results) if (result.status === 'rejected') throw result.reason
  const environments = components.map(({ environment }) => environment)
  process.exitCode = await runTests(Object.assign({ INLET_TEST_CHROMIUM: findChromium() }, ...environments))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
} finally {
  await Promise.all(components.map((component) => component.stop()))
  rmSync(scratch, { recursive: true, force: true })
}

async function postgres(): Promise<Started> {
  const { url, stop } = await startPostgres()
  return { environment: { INLET_TEST_POSTGRES: url }, stop }
}

async function objectGateway(): Promise<Started> {
  const { described, stop } = await startObjectGatewayWithUsers()
  return { environment: { INLET_TEST_OBJECT_GATEWAY: JSON.stringify(described) }, stop }
}

async function nameServers(): Promise<Started> {
  const bind = await startBind()
  try {
    const pebble = await startPebble({ nameServer: bind.described.server })
    const environment = {
      INLET_TEST_NAME_SERVER: JSON.stringify(bind.described),
      INLET_TEST_ACME: JSON.stringify(pebble.described),
    }
    return { environment, stop: async () => void (await Promise.all([pebble.stop(), bind.stop()])) }
  } catch (error) {
    await bind.stop()
    throw error
  }
}

async function runTests(environment: Readonly<Record<string, string>>): Promise<number> {
  if (interrupted) return 1
  run = spawn(process.execPath, [vitest, 'run', ...projects, '--passWithNoTests', ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
    // A process group, so that signals also reach what the tests started.
    detached: true,
    env: { ...process.env, ...environment, TMPDIR: scratch },
  })
  const [code] = (await once(run, 'exit')) as [number | null]
  endGroup(run, 'SIGKILL')
  return interrupted ? 1 : (code ?? 1)
}

function endGroup(leader: ChildProcess | undefined, signal: NodeJS.Signals): void {
  if (leader?.pid === undefined) return
  try {
    process.kill(-leader.pid, signal)
  } catch (error) {
    // The group has already ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
