/** One round: starts a cluster, lets one fault after the other happen to it, waits until all is delivered, and judges. */
import { type Finding, type Judgement, judge } from '../torture/law.ts'
import { Random, seedOfRound } from '../torture/random.ts'
import { seconds } from '../torture/text.ts'
import { Cluster } from './cluster.ts'
import { findWrongCertificates } from './names.ts'
import { createNetwork, type NetworkKind } from './network/network.ts'
import { findUnrest, observe } from './observe.ts'
import type { Options } from './options.ts'
import { drawPlan } from './plan.ts'
import { Spread } from './spread.ts'
import { runStep, type Step, textOf } from './step.ts'

/** Bound of the wait for what was delayed: longer than every back-off of the product. */
const quietMsMax = 120_000
const pollMs = 500

export type RoundResult = Judgement & {
  readonly steps: readonly Step[]
  readonly acknowledgedRecords: number
  readonly quietMs: number
  /** Milliseconds until changes of the configuration were applied. */
  readonly spread: Pick<Spread, 'quiet' | 'underFault'>
}

export type RoundOptions = Pick<Options, 'kinds' | 'pairs' | 'seed' | 'controlDownMs'> & {
  readonly directory: string
  readonly round: number
  readonly network: NetworkKind
  readonly print: (text: string) => void
}

export async function runRound({ directory, seed, round, network, print, ...options }: RoundOptions): Promise<RoundResult> {
  const random = new Random(seedOfRound(seed, round))
  const plan = drawPlan(random, { ...options, network })
  print(`round ${round}: starting the cluster`)
  await using cluster = await Cluster.start({ directory, network: createNetwork(network), random })
  const findings: Finding[] = []
  const steps: Step[] = []
  using spread = new Spread(cluster, new Random(random.seed()))
  for (const faults of plan) {
    print(`  ${textOf(faults)}`)
    const step = await runStep(cluster, faults, spread)
    print(
      `    told after ${seconds(step.toldAfterMs)}, active after ${seconds(step.activeAfterMs)}, noticed by clients ${step.noticed} times`,
    )
    for (const problem of step.problems) print(`    FINDING ${problem}`)
    findings.push(...step.problems.map((problem) => ({ law: 'truth', text: `${step.text}: ${problem}` })))
    steps.push(step)
  }
  print('  waiting until everything is delivered')
  await cluster.stopSending()
  const quietFrom = performance.now()
  const unrest = await waitForQuiet(cluster)
  if (unrest !== undefined) cluster.troubles.push(`not quiet after ${seconds(quietMsMax)}: ${unrest}`)
  const quietMs = performance.now() - quietFrom
  cluster.troubles.push(...(await findWrongCertificates(cluster)))
  const judgement = judge(await observe(cluster))
  const { acknowledgedRecords } = cluster.ledger
  return { ...judgement, findings: [...findings, ...judgement.findings], steps, acknowledgedRecords, quietMs, spread }
}

/** Returns what is still not quiet at the end of the time. */
async function waitForQuiet(cluster: Cluster): Promise<string | undefined> {
  const deadline = performance.now() + quietMsMax
  for (;;) {
    const unrest = await findUnrest(cluster).catch(String)
    if (unrest === undefined || performance.now() > deadline) return unrest
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
