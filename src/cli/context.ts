import type { Writable } from 'node:stream'
import type { CommandContext } from '@stricli/core'
import type { Config } from '#config.ts'
import type { Clock } from '#lib/clock.ts'
import { UserError } from '#lib/user-error.ts'

/** What a command gets from the process that runs it, as `this`. */
export type CliContext = CommandContext & {
  readonly process: {
    readonly stdout: Writable & { readonly isTTY?: boolean }
    readonly stderr: Writable
    /** A command that fails without an error sets this to 1. */
    exitCode?: number
  }
  /** Path of the program, to start other processes of it with. */
  readonly program: string
  readonly clock: Clock
  /** Throws a UserError. Only commands that need the configuration read it, so `--help` always works. */
  readConfig(): Promise<Config>
}

/** The arguments were wrong in a way that only the command itself can see. */
export class UsageError extends UserError {
  override readonly name = 'UsageError'
}
