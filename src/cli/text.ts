/** Texts of the command line: headings of the help, and error messages. */
import { type ApplicationText, ArgumentScannerError, formatMessageForArgumentScannerError, text_en } from '@stricli/core'
import { AppError } from '#errors.ts'
import { nearestName } from '#lib/nearest-name.ts'
import { UserError } from '#lib/user-error.ts'

export const text: ApplicationText = {
  ...text_en,
  headers: { usage: 'Usage', aliases: 'Aliases', commands: 'Commands', flags: 'Options', arguments: 'Arguments' },
  keywords: { default: 'default:', separator: 'separated by' },
  briefs: { ...text_en.briefs, argumentEscapeSequence: 'read everything that follows as arguments' },
  noCommandRegisteredForInput: ({ input, corrections }) => `unknown command: ${input}${formatSuggestion(corrections)}`,
  exceptionWhileParsingArguments: (error) =>
    error instanceof ArgumentScannerError ? formatMessageForArgumentScannerError(error, wrongArguments) : describe(error),
  exceptionWhileLoadingCommandFunction: describe,
  exceptionWhileLoadingCommandContext: describe,
  exceptionWhileRunningCommand: describe,
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
  UnsatisfiedFlagError: ({ externalFlagName }) => `missing option: --${externalFlagName}`,
  UnsatisfiedPositionalError: ({ placeholder }) => `missing argument: ${placeholder}`,
}

/** `known` are the options of the command that are not far off. */
function nearestOptions(input: string, known: readonly string[]): readonly string[] {
  const nearest = nearestName(input, ['help', ...known])
  return nearest === undefined ? [] : [`--${nearest}`]
}

function formatSuggestion(names: readonly string[]): string {
  return names.length === 0 ? '' : `; did you mean ${names.map((name) => name.replaceAll('`', '')).join(' or ')}?`
}

/** The parsers of this program say what an argument must be. Stricli's own parser is for booleans. */
function describeExpected(exception: unknown): string {
  if (exception instanceof SyntaxError) return 'must be true or false'
  return exception instanceof Error ? exception.message : String(exception)
}

/** Returns the message of an error for the user. Any other error is a bug: returns its stack. */
function describe(error: unknown): string {
  if (error instanceof UserError || error instanceof AppError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
