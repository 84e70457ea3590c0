/** The options of a program that runs random faults. */
import { randomInt } from 'node:crypto'
import { type ParseArgsConfig, type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { UserError } from '#lib/user-error.ts'

const seedMax = 0x7fff_ffff

export type CommandLine<T> = {
  readonly usage: string
  /** Throws UserError with one line for the user. */
  readonly readOptions: (args: readonly string[], randomSeed: number) => T
  /** Returns the exit code. */
  readonly run: (options: T) => Promise<number>
}

/** Runs the program, or prints its usage or what is wrong with the options. Returns the exit code. */
export async function runCommandLine<T>({ usage, readOptions, run }: CommandLine<T>): Promise<number> {
  const args = process.argv.slice(2)
  if (args.includes('--help')) {
    console.log(usage)
    return 0
  }
  let options: T
  try {
    options = readOptions(args, randomInt(1, seedMax))
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    console.error(error.message)
    return 2
  }
  return await run(options)
}

/** As parseArgs. Throws UserError that lists the options. */
export function parseOptions<const T extends ParseArgsOptionsConfig>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options } satisfies ParseArgsConfig).values
  } catch (error) {
    const [message = ''] = (error instanceof Error ? error.message : String(error)).split('. ')
    const names = Object.keys(options).map((name) => `--${name}`)
    throw new UserError(`${message.replace(/\.$/, '')}. Options: ${names.join(' ')}`)
  }
}

export function readNumber(name: string, text: string, { min, max }: { readonly min: number; readonly max: number }): number {
  const value = Number(text)
  if (text.trim() === '' || !(value >= min && value <= max)) {
    throw new UserError(`--${name}: must be a number from ${min} to ${max}, not ${JSON.stringify(text)}`)
  }
  return value
}

/** Reads a whole number from 1. */
export function readInteger(name: string, text: string): number {
  const value = readNumber(name, text, { min: 1, max: seedMax })
  if (!Number.isInteger(value)) throw new UserError(`--${name}: must be a whole number, not ${JSON.stringify(text)}`)
  return value
}

/** Reads kinds with commas between them. Without a text: all. */
export function readKinds<T extends string>(text: string | undefined, known: readonly T[]): readonly T[] {
  if (text === undefined) return known
  return text.split(',').map((part) => {
    const kind = known.find((each) => each === part.trim())
    if (kind === undefined) throw new UserError(`--only: unknown kind ${JSON.stringify(part)}; known are ${known.join(', ')}`)
    return kind
  })
}
