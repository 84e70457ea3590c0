import type { CliContext } from './context.ts'

export type JsonFlags = { readonly json: boolean }

/** Prints what a command found for scripts: fields have the names of the API. */
export function printJson({ process: { stdout } }: CliContext, value: unknown): void {
  stdout.write(`${JSON.stringify(value, undefined, 2)}\n`)
}
