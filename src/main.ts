/** Entry point of `inlet`. */
import { fileURLToPath } from 'node:url'
import { runCommandLine } from '#cli/command-line.ts'
import { systemClock } from '#lib/clock.ts'

process.exitCode = await runCommandLine(process.argv.slice(2), {
  process: { stdout: process.stdout, stderr: process.stderr },
  program: fileURLToPath(import.meta.url),
  clock: systemClock,
  readConfig: async () => (await import('./config.ts')).readConfig(),
})
