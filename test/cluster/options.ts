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
  /** For how long `no-control` lasts. */
  readonly controlDownMs: number
  readonly keep: boolean
}

/** Long enough for nodes to say that they are cut off, and to deliver many segments without control. */
const [controlDownMs, fullControlDownMs] = [75_000, 600_000]

/** Faults of a short run: one for each part of the cluster. */
const shortKinds: readonly FaultKind[] = [
  'kill-node',
  'cut-one-way',
  'restart-nodes',
  'thaw-node',
  'old-primary',
  'delete-record',
]

export const usage = `npm run test:cluster [-- --rounds N] [--seed S] [--only kind,kind] [--pairs N] [--short] [--full] [--loopback] [--keep]

  --rounds N        how many rounds, default 1; each has every kind of fault once
  --seed S          repeats the plans of an earlier run, default random
  --only kind,kind  only these faults: ${faultKinds.join(', ')}
  --pairs N         how many pairs of faults that overlap come after the others, default 3, 0 with --short or --only
  --short           only ${shortKinds.join(', ')}
  --full            no-control lasts for ten minutes, not for ${controlDownMs / 1_000} s
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
    full: flag,
    loopback: flag,
    keep: flag,
  })
  const {
    rounds = '1',
    seed = String(randomSeed),
    only,
    pairs,
    short = false,
    full = false,
    loopback = false,
    keep = false,
  } = values
  return {
    rounds: readInteger('rounds', rounds),
    seed: readInteger('seed', seed),
    kinds: short && only === undefined ? shortKinds : readKinds(only, faultKinds),
    pairs: readNumber('pairs', pairs ?? (short || only !== undefined ? '0' : '3'), { min: 0, max: 100 }),
    network: loopback ? 'loopback' : undefined,
    controlDownMs: full ? fullControlDownMs : controlDownMs,
    keep,
  }
}
