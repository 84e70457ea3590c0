import { parseOptions, readInteger, readKinds, readNumber } from './command-line.ts'
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
  const text = { type: 'string' } as const
  const values = parseOptions(args, { minutes: text, seed: text, only: text, round: text, keep: { type: 'boolean' } })
  const { minutes = '1', seed = String(randomSeed), only, round, keep = false } = values
  return {
    minutes: readNumber('minutes', minutes, { min: 0.1, max: 24 * 60 }),
    seed: readInteger('seed', seed),
    kinds: readKinds(only, faultKinds),
    round: round === undefined ? undefined : readInteger('round', round),
    keep,
  }
}
