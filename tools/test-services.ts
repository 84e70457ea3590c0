/** Runs the suites that want real components, and starts those before: `npm run test:services [-- vitest options]`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { type Postgres, startPostgres } from './services.ts'

const vitest = join(import.meta.dirname, '..', 'node_modules', 'vitest', 'vitest.mjs')
const args = process.argv.slice(2)
const projects = args.includes('--project') ? [] : ['--project', 'store', '--project', 'contract']

// A signal ends the tests. This process outlives them to clean up.
let interrupted = false
let run: ChildProcess | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    interrupted = true
    run?.kill(signal)
  })
}

let postgres: Postgres | undefined
try {
  console.log('starting Postgres …')
  postgres = await startPostgres()
  process.exitCode = await runTests({ INLET_TEST_POSTGRES: postgres.url })
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
} finally {
  await postgres?.stop()
}

async function runTests(environment: Readonly<Record<string, string>>): Promise<number> {
  if (interrupted) return 1
  run = spawn(process.execPath, [vitest, 'run', ...projects, '--passWithNoTests', ...args], {
    stdio: 'inherit',
    env: { ...process.env, ...environment },
  })
  const [code] = (await once(run, 'exit')) as [number | null]
  return interrupted ? 1 : (code ?? 1)
}
