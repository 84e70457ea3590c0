import { parseOptions, readInteger, readKinds, readNumber } from '../torture/command-line.ts'
import { type FaultKind, faultKinds } from './faults/fault.ts'
import type { NetworkKind } from './network/network.ts'

export type Options = {
  readonly rounds: number
  readonly seed: number
  readonly kinds: readonly FaultKind[]
  readonly pairs: number
  /** Undefined: namespaces if they are permitted. */
  readonly network: NetworkKind | undefined
  readonly keep: boolean
}

/** Faults of a short run: one for each part of the cluster. */
const shortKinds: readonly FaultKind[] = ['kill-node', 'cut-node', 'restart-nodes', 'fail-over', 'delete-record']

export const usage = `npm run test:cluster [-- --rounds N] [--seed S] [--only kind,kind] [--pairs N] [--short] [--loopback] [--keep]

  --rounds N        how many rounds, default 1; each has every kind of fault once
  --seed S          repeats the plans of an earlier run, default random
  --only kind,kind  only these faults: ${faultKinds.join(', ')}
  --pairs N         how many pairs of faults that overlap come after the others, default 3, 1 with --short, 0 with --only
  --short           only ${shortKinds.join(', ')}
  --loopback        loopback addresses instead of network namespaces; then nothing can be cut
  --keep            keep the directory of each round, also without a finding`

/** Parses the command line. Throws UserError with one line for the user. */
export function readOptions(args: readonly string[], randomSeed: number): Options {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const values = parseOptions(args, {
    rounds: text,
    seed: text,
    only: text,
    pairs: text,
    short: flag,
    loopback: flag,
    keep: flag,
  })
  const { rounds = '1', seed = String(randomSeed), only, pairs, short = false, loopback = false, keep = false } = values
  return {
    rounds: readInteger('rounds', rounds),
    seed: readInteger('seed', seed),
    kinds: short && only === undefined ? shortKinds : readKinds(only, faultKinds),
    pairs: pairs === undefined ? pairsOf(only, short) : readNumber('pairs', pairs, { min: 0, max: 100 }),
    network: loopback ? 'loopback' : undefined,
    keep,
  }
}

function pairsOf(only: string | undefined, short: boolean): number {
  if (only !== undefined) return 0
  return short ? 1 : 3
}
