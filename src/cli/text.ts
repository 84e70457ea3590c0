/** The words of the command line: headings of help texts, and what is wrong with a command that cannot run. */
import { type ApplicationText, ArgumentScannerError, formatMessageForArgumentScannerError, text_en } from '@stricli/core'
import { AppError } from '#errors.ts'
import { UserError } from '#lib/user-error.ts'

export const text: ApplicationText = {
  ...text_en,
  headers: { usage: 'Usage', aliases: 'Aliases', commands: 'Commands', flags: 'Options', arguments: 'Arguments' },
  keywords: { default: 'default:', separator: 'separated by' },
  briefs: { ...text_en.briefs, argumentEscapeSequence: 'read everything that follows as arguments' },
  noCommandRegisteredForInput: ({ input, corrections }) => `unknown command: ${input}${suggestion(corrections)}`,
  exceptionWhileParsingArguments: (error) =>
    error instanceof ArgumentScannerError ? formatMessageForArgumentScannerError(error, wrongArguments) : describe(error),
  exceptionWhileLoadingCommandFunction: describe,
  exceptionWhileLoadingCommandContext: describe,
  exceptionWhileRunningCommand: describe,
}

const wrongArguments: Parameters<typeof formatMessageForArgumentScannerError>[1] = {
  FlagNotFoundError: ({ input, corrections }) =>
    `unknown option: --${input}${suggestion(corrections.map((name) => `--${name}`))}`,
  AliasNotFoundError: ({ input }) => `unknown option: -${input}`,
  ArgumentParseError: ({ externalFlagNameOrPlaceholder: name, input, exception }) =>
    `${name === name.toUpperCase() ? name : `--${name}`}: ${exception instanceof Error ? exception.message : exception}, not ${JSON.stringify(input)}`,
  EnumValidationError: ({ externalFlagName, input, values }) =>
    `--${externalFlagName}: must be ${values.join(' or ')}, not ${JSON.stringify(input)}`,
  UnexpectedFlagError: ({ externalFlagName }) => `--${externalFlagName} may be given only once`,
  UnexpectedPositionalError: ({ input }) => `unexpected argument: ${input}`,
  UnsatisfiedFlagError: ({ externalFlagName }) => `missing option: --${externalFlagName}`,
  UnsatisfiedPositionalError: ({ placeholder }) => `missing argument: ${placeholder}`,
}

function suggestion(names: readonly string[]): string {
  return names.length === 0 ? '' : `; did you mean ${names.map((name) => name.replaceAll('`', '')).join(' or ')}?`
}

/** Errors for the user are shown as their message. Any other is a bug, and its stack helps to fix it. */
function describe(error: unknown): string {
  if (error instanceof UserError || error instanceof AppError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
