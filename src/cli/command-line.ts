/**
 * Reads the command line and runs one command.
 *
 * Owns: exit codes, help, messages about wrong usage. Does not own: the list of commands (commands.ts).
 * Law: exit code 0 is success, 1 failure, 2 wrong usage, 3 what an option asks for. A process loads only the command that it runs.
 */
import { buildApplication, ExitCode, help, type RouteMap, run, version } from '@stricli/core'
import { readVersion } from '#lib/version.ts'
import { commands } from './commands.ts'
import { type CliContext, tolerateClosedPipes, UsageError } from './terminal/context.ts'
import { textFor } from './terminal/text.ts'

/** `args` is the command line, for its error messages. */
export const createApplication = (args: readonly string[]) =>
  buildApplication<CliContext>(
    commands,
    {
      name: 'inlet',
      scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
      localization: { text: textFor(args) },
      determineExitCode: (error) => (error instanceof UsageError ? 2 : 1),
    },
    {
      help: help({
        brief: 'show the help of a command',
        defaultForRouteMap: true,
        formatting: { caseStyle: 'convert-camel-to-kebab', useAliasInUsageLine: false, onlyRequiredInUsageLine: false },
      }),
      version: version({ brief: 'show the version', info: { getCurrentVersion: readVersion } }),
    },
  )

/** Runs the command and returns the exit code. */
export async function runCommandLine(args: readonly string[], context: CliContext): Promise<number> {
  tolerateClosedPipes(context)
  if (args[0] === '__complete') {
    const { printCompletions } = await import('./completion/completions.ts')
    await printCompletions(createApplication(args), args.slice(1), context)
    return 0
  }
  const { profile, rest } = takeProfile(args)
  // A variable of a script that is not set must not lead to another account.
  if (profile === '') {
    context.process.stderr.write('--profile needs a value\nSee: inlet --help\n')
    return 2
  }
  const inputs = rest[0] === 'help' ? [...rest.slice(1), '--help'] : rest
  await run(createApplication(inputs), inputs, profile === undefined ? context : withProfile(context, profile))
  const code = context.process.exitCode ?? 0
  const isUsageError = code === 2 || code === ExitCode.UnknownCommand || code === ExitCode.InvalidArgument
  if (isUsageError) context.process.stderr.write(`See: ${['inlet', ...commandNames(inputs), '--help'].join(' ')}\n`)
  return isUsageError ? 2 : code === 0 || code === 3 ? code : 1
}

/** Every command takes a profile, before its name. */
function takeProfile(args: readonly string[]): { readonly profile?: string; readonly rest: readonly string[] } {
  const [first = '', second] = args
  if (first.startsWith('--profile=')) return { profile: first.slice('--profile='.length), rest: args.slice(1) }
  return first === '--profile' ? { profile: second ?? '', rest: args.slice(2) } : { rest: args }
}

function withProfile(context: CliContext, profile: string): CliContext {
  return { ...context, readEnvironment: async () => ({ ...(await context.readEnvironment()), INLET_PROFILE: profile }) }
}

/** Returns the leading arguments that name a command or a group of commands. */
function commandNames(args: readonly string[]): readonly string[] {
  const names: string[] = []
  let group: RouteMap<CliContext> = commands
  for (const name of args) {
    const target = group.getRoutingTargetForInput(name)
    if (target === undefined) break
    names.push(name)
    if (!('getAllEntries' in target)) break
    group = target
  }
  return names
}
