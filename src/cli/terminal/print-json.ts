import type { CliContext } from './context.ts'

export type JsonFlags = { readonly json: boolean }

/** Prints what a command did: as a resource for scripts, or as text for people. */
export function printResult(context: CliContext, { json }: JsonFlags, value: unknown, text: string): void {
  if (json) printJson(context, value)
  else context.process.stdout.write(text)
}

/** Prints what a command found for scripts: fields have the names of the API. */
export function printJson({ process: { stdout } }: CliContext, value: unknown): void {
  stdout.write(`${JSON.stringify(value, undefined, 2)}\n`)
}
