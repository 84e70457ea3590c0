import { parseArgs } from 'node:util'
import { UserError } from '#lib/user-error.ts'
import { type FaultKind, faultKinds } from './plan.ts'

export type Options = {
  readonly minutes: number
  readonly seed: number
  readonly kinds: readonly FaultKind[]
  /** Runs only this round. */
  readonly round: number | undefined
  readonly keep: boolean
}

export const usage = `npm run torture -- [--minutes N] [--seed S] [--only kind,kind] [--round K] [--keep]

  --minutes N       how long to begin new rounds, default 1
  --seed S          repeats the plans of an earlier run, default random
  --only kind,kind  only these faults: ${faultKinds.join(', ')}
  --round K         only this round of the seed
  --keep            keep the directories of rounds without a finding, too`

/** Parses the command line. Throws UserError with one line for the user. */
export function readOptions(args: readonly string[], randomSeed: number): Options {
  const { values } = parse(args)
  const { minutes = '1', seed = String(randomSeed), only, round, keep = false } = values
  return {
    minutes: numberOf('minutes', minutes, { min: 0.1, max: 24 * 60 }),
    seed: integerOf('seed', seed),
    kinds: only === undefined ? faultKinds : only.split(',').map(kindOf),
    round: round === undefined ? undefined : integerOf('round', round),
    keep,
  }
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const
  try {
    return parseArgs({
      args: [...args],
      options: { minutes: text, seed: text, only: text, round: text, keep: { type: 'boolean' } },
    })
  } catch (error) {
    const [message = ''] = (error instanceof Error ? error.message : String(error)).split('. ')
    throw new UserError(`${message.replace(/\.$/, '')}. Options: --minutes --seed --only --round --keep`)
  }
}

function numberOf(name: string, text: string, { min, max }: { readonly min: number; readonly max: number }): number {
  const value = Number(text)
  if (text.trim() === '' || !(value >= min && value <= max)) {
    throw new UserError(`--${name}: must be a number from ${min} to ${max}, not ${JSON.stringify(text)}`)
  }
  return value
}

function integerOf(name: string, text: string): number {
  const value = numberOf(name, text, { min: 1, max: 0x7fff_ffff })
  if (!Number.isInteger(value)) throw new UserError(`--${name}: must be a whole number, not ${JSON.stringify(text)}`)
  return value
}

function kindOf(text: string): FaultKind {
  const kind = faultKinds.find((known) => known === text.trim())
  if (kind === undefined) throw new UserError(`--only: unknown kind ${JSON.stringify(text)}; known are ${faultKinds.join(', ')}`)
  return kind
}
