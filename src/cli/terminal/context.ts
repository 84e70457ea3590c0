import type { Writable } from 'node:stream'
import type { CommandContext } from '@stricli/core'
import type { Config } from '#config/config.ts'
import type { Clock } from '#lib/clock.ts'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'

/** The `this` of every command: the interface to the process that runs it. */
export type CliContext = CommandContext & {
  readonly process: {
    readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number }
    readonly stderr: Writable & { readonly isTTY?: boolean }
    /** A command that fails without an error sets this to 1, and 3 means what an option of its own says. */
    exitCode?: number
  }
  /** Path of the program, to start child processes. */
  readonly program: string
  readonly clock: Clock
  /** Reads the environment as it is, for commands that call an Inlet over HTTP. */
  readEnvironment(): Promise<Readonly<Record<string, string | undefined>>>
  /**
   * Reads the environment, with these variables in place of those in it. Throws a UserError. Only commands that need the configuration
   * read it, so `--help` always works.
   */
  readConfig(settings?: Readonly<Record<string, string>>): Promise<Config>
}

/** Invalid arguments that only the command itself can detect. */
export class UsageError extends UserError {
  override readonly name = 'UsageError'
}

/** A reader such as `head` may close a pipe at any time: then the output ends early, without an error. */
export function tolerateClosedPipes({ process: { stdout, stderr } }: CliContext): void {
  for (const stream of [stdout, stderr])
    stream.on('error', (error) => {
      if (errorCode(error) !== 'EPIPE') throw error
    })
}
