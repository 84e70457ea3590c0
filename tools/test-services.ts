/** Runs the suites that want real components, and starts those before: `npm run test:services [-- vitest options]`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { startPostgres } from './services.ts'

const vitest = join(import.meta.dirname, '..', 'node_modules', 'vitest', 'vitest.mjs')
const args = process.argv.slice(2)
const projects = args.includes('--project') ? [] : ['--project', 'store', '--project', 'contract']

// The children get the terminal's signals too. This process only has to outlive them, to clean up.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined)

console.log('starting Postgres …')
const postgres = await startPostgres()
try {
  const run = spawn(process.execPath, [vitest, 'run', ...projects, '--passWithNoTests', ...args], {
    stdio: 'inherit',
    env: { ...process.env, INLET_TEST_POSTGRES: postgres.url },
  })
  process.once('SIGTERM', () => run.kill('SIGTERM'))
  const [code] = (await once(run, 'exit')) as [number | null]
  process.exitCode = code ?? 1
} finally {
  await postgres.stop()
}
