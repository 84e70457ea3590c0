import { systemClock } from '#lib/clock.ts'
import { runCommandLine } from './command-line.ts'

/** Runs the command line of this process and returns its exit code. `program` starts children. */
export function runInlet(program: string): Promise<number> {
  return runCommandLine(process.argv.slice(2), {
    process: { stdout: process.stdout, stderr: process.stderr },
    program,
    clock: systemClock,
    readEnvironment: async () => (await import('#config/config.ts')).environment,
    readConfig: async (settings) => {
      const { environment, readConfig } = await import('#config/config.ts')
      return readConfig({ ...environment, ...settings })
    },
  })
}
