import { buildCommand, type Command, type CommandFunctionLoader, type TypedCommandParameters } from '@stricli/core'
import type { CliContext } from '../terminal/context.ts'

/** A command, whose code is loaded when it runs. */
export function command<
  const Flags extends Readonly<Partial<Record<keyof Flags, unknown>>>,
  const Args extends readonly unknown[],
>(
  brief: string,
  loader: CommandFunctionLoader<Flags, Args, CliContext>,
  parameters: NoInfer<TypedCommandParameters<Flags, Args, CliContext>>,
  fullDescription?: string,
): Command<CliContext> {
  const docs = { brief, ...(fullDescription === undefined ? {} : { fullDescription }) }
  return buildCommand<Flags, Args, CliContext>({ loader, parameters, docs })
}
