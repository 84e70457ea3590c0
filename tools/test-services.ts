/**
 * Starts the real components that suites need, and runs these suites: `npm run test:services [-- --project SUITE] [files and options of vitest]`.
 * Without a suite or a file it runs on Postgres what is about the database: the store, and files of the API that open databases of their own.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBind } from './services/bind.ts'
import { findChromium } from './services/chromium.ts'
import { startObjectGatewayWithUsers } from './services/gateway-users.ts'
import { startPebble } from './services/pebble.ts'
import { startPostgres } from './services/postgres.ts'

const root = join(import.meta.dirname, '..')
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
const needs: Readonly<Record<string, readonly (() => Promise<Started>)[]>> = {
  store: [postgres],
  contract: [postgres],
  'contract-slow': [postgres],
  views: [postgres],
  s3: [objectGateway],
  names: [nameServers],
  browser: [chromium, postgres],
}
const args = process.argv.slice(2)
const suites = Object.keys(needs).filter((suite) => args.some((arg, index) => isOf(suite, arg, args[index - 1])))
if (args.includes('--help')) {
  console.log(
    `npm run test:services [-- --project SUITE] [-- options and files of vitest]\nStarts what a suite needs, and runs it. Suites: ${Object.keys(needs).join(', ')}.\nWithout a suite or a file: what is about the database, on Postgres.`,
  )
  process.exit(0)
}
if (suites.length === 0) {
  suites.push('store', 'contract')
  args.push('test/store', ...filesWithDatabases())
}

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
  const needed = new Set(suites.flatMap((suite) => needs[suite] ?? []))
  console.log(`starting what ${suites.join(' and ')} needs: ${[...needed].map(({ name }) => name).join(', ')} …`)
  // Waits for all even if one fails, so that those that started are stopped.
  const results = await Promise.allSettled([...needed].map((start) => start()))
  components = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  for (const result of results) if (result.status === 'rejected') throw result.reason
  const environments = components.map(({ environment }) => environment)
  process.exitCode = await runTests(Object.assign({}, ...environments))
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

async function chromium(): Promise<Started> {
  return { environment: { INLET_TEST_CHROMIUM: findChromium() }, stop: async () => undefined }
}

/** Whether an argument, after the one before it, names the suite or a file of it. */
function isOf(suite: string, arg: string, before: string | undefined): boolean {
  return arg === `--project=${suite}` || (before === '--project' && arg === suite) || arg.startsWith(`test/${suite}/`)
}

/** Tests of the API that open databases of their own. .ci/thorough runs the others on Postgres, when the store or control has changed. */
function filesWithDatabases(): readonly string[] {
  const files = globSync('test/contract/*.test.ts', { cwd: root })
  return files.filter((file) => readFileSync(join(root, file), 'utf8').includes("from '../support/databases.ts'"))
}

async function runTests(environment: Readonly<Record<string, string>>): Promise<number> {
  if (interrupted) return 1
  run = spawn(process.execPath, [vitest, 'run', ...suites.map((suite) => `--project=${suite}`), '--passWithNoTests', ...args], {
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
