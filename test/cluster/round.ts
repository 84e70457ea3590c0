/** One round: starts a cluster, lets one fault after the other happen to it, waits until all is delivered, and judges. */
import { type Finding, type Judgement, judge } from '../torture/law.ts'
import { Random, seedOfRound } from '../torture/random.ts'
import { listSome, seconds } from '../torture/text.ts'
import { Cluster, type ClusterEndpoint } from './cluster.ts'
import { type Fault, servingNodes, stopsClients, truthUnder } from './faults/fault.ts'
import { controlNames, nodeNames, nodesOf } from './layout.ts'
import { findWrongCertificates, findWrongRecords } from './names.ts'
import { createNetwork, type NetworkKind } from './network/network.ts'
import { findUnrest, observe } from './observe.ts'
import type { Options } from './options.ts'
import { drawPlan } from './plan.ts'
import { faultMsMax, Spread } from './spread.ts'
import { awaitTruth, findUntruths, Told, truthMsMax, watchTruth } from './truth.ts'

/** Longest wait of a client for its acknowledgement while a node of its region serves: a timeout, another address, an MQTT connection. */
const waitMsMax = 15_000
/** Bound of the wait for what was delayed: longer than every back-off of the product. */
const quietMsMax = 120_000
const pollMs = 500

export type Step = {
  readonly fault: Fault
  readonly noticed: number
  readonly toldAfterMs: number
  readonly activeAfterMs: number
}

export type RoundResult = Judgement & {
  readonly steps: readonly Step[]
  readonly acknowledgedRecords: number
  readonly quietMs: number
  /** Milliseconds until changes of the configuration were applied. */
  readonly spread: Pick<Spread, 'quiet' | 'underFault'>
}

export type RoundOptions = Pick<Options, 'kinds' | 'seed'> & {
  readonly directory: string
  readonly round: number
  readonly network: NetworkKind
  readonly print: (text: string) => void
}

export async function runRound({ directory, seed, round, kinds, network, print }: RoundOptions): Promise<RoundResult> {
  const random = new Random(seedOfRound(seed, round))
  const plan = drawPlan(random, kinds, network)
  print(`round ${round}: starting the cluster`)
  await using cluster = await Cluster.start({ directory, network: createNetwork(network), random })
  const findings: Finding[] = []
  const steps: Step[] = []
  using spread = new Spread(cluster, new Random(random.seed()))
  for (const fault of plan) {
    print(`  ${fault.text}`)
    const { step, problems } = await runStep(cluster, fault, spread)
    print(
      `    told after ${seconds(step.toldAfterMs)}, active after ${seconds(step.activeAfterMs)}, noticed by clients ${step.noticed} times`,
    )
    for (const problem of problems) print(`    FINDING ${problem}`)
    findings.push(...problems.map((problem) => ({ law: 'truth', text: `${fault.text}: ${problem}` })))
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

async function runStep(
  cluster: Cluster,
  fault: Fault,
  spread: Spread,
): Promise<{ readonly step: Step; readonly problems: readonly string[] }> {
  const problems: string[] = []
  const since = performance.now()
  cluster.note(fault.text)
  const heal = await fault.begin(cluster)
  const servingOf = (endpoint: ClusterEndpoint) => servingNodes(fault, endpoint)
  const onTheWay = new Told()
  const findUnder = async () => [
    ...(await findUntruths(cluster, fault.controls, truthUnder(fault, cluster), onTheWay)),
    ...(fault.hidesRecords === true ? [] : await findWrongRecords(cluster, servingOf)),
  ]
  const told = await awaitTruth(findUnder)
  problems.push(...told.wrong.map((text) => `${seconds(truthMsMax)} later ${text}`))
  const watched = await watchTruth(findUnder, fault.holdMs)
  if (told.wrong.length === 0) problems.push(...watched, ...onTheWay.findDetours())
  problems.push(...((await fault.check?.(cluster)) ?? []))
  const reached = nodeNames.filter((name) => !fault.missing.includes(name))
  const changes = fault.controls.length === 0 ? undefined : await spread.measureUnder(fault.controls, reached)
  problems.push(...(changes?.problems ?? []))
  cluster.note(`healing: ${fault.text}`)
  await heal()
  cluster.note(`healed: ${fault.text}`)
  const active = await awaitTruth(async () => [
    ...(await findUntruths(cluster, controlNames, () => ({ statuses: ['active'] }))),
    ...(await findWrongRecords(cluster, ({ region }) => nodesOf(region))),
  ])
  problems.push(...active.wrong.map((text) => `${seconds(truthMsMax)} after it was healed ${text}`))
  const late = await awaitTruth(async () => (await changes?.findMissing()) ?? [], faultMsMax)
  problems.push(...late.wrong.map((text) => `${seconds(faultMsMax)} after it was healed ${text}`), ...(await spread.measure()))
  for (const endpoint of cluster.endpoints) {
    const waited = cluster.waits.longest(endpoint.id, since)
    if (waited > waitMsMax && !stopsClients(fault, endpoint)) {
      problems.push(`a client of an endpoint in ${endpoint.region} (${endpoint.protocol}) waited ${seconds(waited)}`)
    }
  }
  const noticed = cluster.notices.since(since)
  const mayBeNoticed = fault.stopsServing || fault.misleadsClients === true
  if (noticed.length > 0 && !mayBeNoticed) problems.push(`clients noticed it ${noticed.length} times: ${listSome(noticed)}`)
  return { step: { fault, noticed: noticed.length, toldAfterMs: told.ms, activeAfterMs: active.ms }, problems }
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
