import { Writable } from 'node:stream'
import { runCommandLine } from '#cli/command-line.ts'
import { type Config, readConfig } from '#config/config.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { ownSettings } from './own-settings.ts'

export type CliOptions = {
  readonly config?: Config
  /** Read if no configuration is given. */
  readonly environment?: Readonly<Record<string, string>>
  readonly clock?: Clock
}

export type CliResult = { readonly code: number; readonly out: string; readonly err: string }

/** Runs one `inlet` command in this process, as a terminal would show it. */
export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const { config, clock = systemClock } = options
  const given = options.environment ?? {}
  // A home has profiles of its own.
  const environment = 'HOME' in given ? given : { ...ownSettings(), ...given }
  const [stdout, stderr] = [collecting(), collecting()]
  const code = await runCommandLine(args, {
    process: { stdout: stdout.stream, stderr: stderr.stream },
    program: 'src/main.ts',
    clock,
    readEnvironment: async () => environment,
    readConfig: async (settings) => config ?? readConfig({ ...environment, ...settings }),
  })
  return { code, out: stdout.text(), err: stderr.text() }
}

function collecting() {
  const chunks: Buffer[] = []
  const stream = new Writable({
    write(chunk, _, done) {
      chunks.push(chunk as Buffer)
      done()
    },
  })
  return { stream, text: () => Buffer.concat(chunks).toString() }
}
