/** Texts of the command line: headings of the help, and error messages. */
import { type ApplicationText, ArgumentScannerError, formatMessageForArgumentScannerError, text_en } from '@stricli/core'
import { InletError } from '#client/errors.ts'
import { AppError } from '#errors.ts'
import { nearestName } from '#lib/nearest-name.ts'
import { UserError } from '#lib/user-error.ts'

const text: Omit<ApplicationText, 'exceptionWhileParsingArguments'> = {
  ...text_en,
  headers: { usage: 'Usage', aliases: 'Aliases', commands: 'Commands', flags: 'Options', arguments: 'Arguments' },
  keywords: { default: 'default:', separator: 'separated by' },
  briefs: { ...text_en.briefs, argumentEscapeSequence: 'read everything that follows as arguments' },
  noCommandRegisteredForInput: ({ input, corrections }) =>
    input.startsWith('-')
      ? `unknown option: ${input}${formatSuggestion(nearestOptions(input.replace(/^-+/, ''), ['version']))}`
      : `unknown command: ${input}${formatSuggestion(nearestCommands(input, corrections))}`,
  exceptionWhileLoadingCommandFunction: describe,
  exceptionWhileLoadingCommandContext: describe,
  exceptionWhileRunningCommand: describe,
}

/** `args` is the command line, to tell an option without its value from one that is missing. */
export function textFor(args: readonly string[]): ApplicationText {
  const messages: typeof wrongArguments = {
    ...wrongArguments,
    UnsatisfiedFlagError: ({ externalFlagName: name }) =>
      args.includes(`--${name}`) ? `--${name} needs a value` : `missing option: --${name}`,
  }
  return {
    ...text,
    exceptionWhileParsingArguments: (error) =>
      error instanceof ArgumentScannerError ? formatMessageForArgumentScannerError(error, messages) : describe(error),
  }
}

const wrongArguments: Parameters<typeof formatMessageForArgumentScannerError>[1] = {
  FlagNotFoundError: ({ input, corrections }) =>
    `unknown option: --${input}${formatSuggestion(nearestOptions(input, corrections))}`,
  AliasNotFoundError: ({ input }) => `unknown option: -${input}`,
  ArgumentParseError: ({ externalFlagNameOrPlaceholder: name, input, exception }) =>
    `${name === name.toUpperCase() ? name : `--${name}`}: ${describeExpected(exception)}, not ${JSON.stringify(input)}`,
  EnumValidationError: ({ externalFlagName, input, values }) =>
    `--${externalFlagName}: must be ${values.join(' or ')}, not ${JSON.stringify(input)}`,
  UnexpectedFlagError: ({ externalFlagName }) => `--${externalFlagName} may be given only once`,
  UnexpectedPositionalError: ({ input }) => `unexpected argument: ${input}`,
  UnsatisfiedPositionalError: ({ placeholder }) => `missing argument: ${placeholder}`,
}

/** Stricli proposes names that are far off for a short input. */
function nearestCommands(input: string, proposed: readonly string[]): readonly string[] {
  const nearest = nearestName(
    input,
    proposed.map((name) => name.replaceAll('`', '')),
  )
  return nearest === undefined ? [] : [nearest]
}

/** `known` are the options of the command that are not far off. */
function nearestOptions(input: string, known: readonly string[]): readonly string[] {
  const nearest = nearestName(input, ['help', ...known])
  return nearest === undefined ? [] : [`--${nearest}`]
}

function formatSuggestion(names: readonly string[]): string {
  return names.length === 0 ? '' : `; did you mean ${names.join(' or ')}?`
}

/** The parsers of this program say what an argument must be. Stricli's own parser is for booleans. */
function describeExpected(exception: unknown): string {
  if (exception instanceof SyntaxError) return 'must be true or false'
  return exception instanceof Error ? exception.message : String(exception)
}

/** Returns the message of an error for the user. Any other error is a bug: returns its stack. */
function describe(error: unknown): string {
  if (error instanceof UserError || error instanceof AppError || error instanceof InletError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
