import { parseArgs } from 'node:util'
import { UserError } from '#lib/user-error.ts'
import { type FaultKind, faultKinds } from './faults/fault.ts'
import type { NetworkKind } from './network/network.ts'

export type Options = {
  readonly rounds: number
  readonly seed: number
  readonly kinds: readonly FaultKind[]
  /** Undefined: namespaces if they are permitted. */
  readonly network: NetworkKind | undefined
  readonly keep: boolean
}

/** What a short run has: one fault for each part of the cluster. */
const shortKinds: readonly FaultKind[] = ['kill-node', 'cut-node', 'restart-nodes', 'fail-over']

export const usage = `npm run test:cluster [-- --rounds N] [--seed S] [--only kind,kind] [--short] [--loopback] [--keep]

  --rounds N        how many rounds, default 1; each has every kind of fault once
  --seed S          repeats the plans of an earlier run, default random
  --only kind,kind  only these faults: ${faultKinds.join(', ')}
  --short           only ${shortKinds.join(', ')}
  --loopback        loopback addresses instead of network namespaces; then nothing can be cut
  --keep            keep the directory of each round, also without a finding`

/** Parses the command line. Throws UserError with one line for the user. */
export function readOptions(args: readonly string[], randomSeed: number): Options {
  const values = parse(args)
  const { rounds = '1', seed = String(randomSeed), only, short = false, loopback = false, keep = false } = values
  const kinds = short ? shortKinds : faultKinds
  return {
    rounds: integerOf('rounds', rounds),
    seed: integerOf('seed', seed),
    kinds: only === undefined ? kinds : only.split(',').map(kindOf),
    network: loopback ? 'loopback' : undefined,
    keep,
  }
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  try {
    const options = { rounds: text, seed: text, only: text, short: flag, loopback: flag, keep: flag }
    return parseArgs({ args: [...args], options }).values
  } catch (error) {
    const [message = ''] = (error instanceof Error ? error.message : String(error)).split('. ')
    throw new UserError(`${message.replace(/\.$/, '')}. Options: --rounds --seed --only --short --loopback --keep`)
  }
}

function integerOf(name: string, text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1 || value > 0x7fff_ffff) {
    throw new UserError(`--${name}: must be a whole number from 1, not ${JSON.stringify(text)}`)
  }
  return value
}

function kindOf(text: string): FaultKind {
  const kind = faultKinds.find((known) => known === text.trim())
  if (kind === undefined) throw new UserError(`--only: unknown kind ${JSON.stringify(text)}; known are ${faultKinds.join(', ')}`)
  return kind
}
