/** One step of a round: a fault, or several that begin one after the other, last together, and end in the same order. */
import { listSome, seconds } from '../torture/text.ts'
import type { Cluster } from './cluster.ts'
import type { Fault } from './faults/fault.ts'
import {
  hasRightRecords,
  heardNodes,
  mayBeNoticed,
  servingNodes,
  stopsClients,
  tellingControls,
  truthUnder,
} from './faults/situation.ts'
import { controlNames } from './layout.ts'
import { findWrongRecords } from './names.ts'
import { faultMsMax, type Spread } from './spread.ts'
import { allActive, awaitTruth, type Find, findUntruths, Told, truthMsMax, watchTruth } from './truth.ts'

/** Longest wait of a client for its acknowledgement while a node of its region serves: a timeout, another address, an MQTT connection. */
const waitMsMax = 15_000

export type Step = {
  readonly text: string
  readonly problems: readonly string[]
  /** How often clients had to try again. */
  readonly noticed: number
  readonly toldAfterMs: number
  readonly activeAfterMs: number
}

export async function runStep(cluster: Cluster, faults: readonly Fault[], spread: Spread): Promise<Step> {
  const since = performance.now()
  const problems: string[] = []
  const ends: (() => Promise<void>)[] = []
  let toldAfterMs = 0
  const awaitTold = async (find: Find, when: string) => {
    const { ms, wrong } = await awaitTruth(find)
    toldAfterMs = Math.max(toldAfterMs, ms)
    problems.push(...wrong.map((text) => `${seconds(truthMsMax)} ${when} ${text}`))
    return wrong.length === 0
  }
  for (const [at, fault] of faults.entries()) {
    cluster.note(fault.text)
    ends.push(await fault.begin(cluster))
    const told = new Told()
    const isTold = await awaitTold(lookUnder(cluster, faults.slice(0, at + 1), told), 'later')
    if (isTold && fault.beginsByRestart !== true) problems.push(...told.findDetours())
    if (at < faults.length - 1) continue
    const watched = await watchTruth(lookUnder(cluster, faults), Math.max(...faults.map(({ holdMs }) => holdMs)))
    if (isTold) problems.push(...watched)
  }
  for (const { check } of faults) problems.push(...((await check?.(cluster)) ?? []))
  const changes = await spread.measureUnder(tellingControls(faults), heardNodes(faults))
  problems.push(...changes.problems)
  for (const [at, end] of ends.entries()) {
    cluster.note(`healing: ${faults[at]?.text}`)
    await end()
    cluster.note(`healed: ${faults[at]?.text}`)
    const left = faults.slice(at + 1)
    if (left.length > 0) await awaitTold(lookUnder(cluster, left), `after the end of "${faults[at]?.text}"`)
  }
  const activeMsMax = Math.max(...faults.map(({ catchUpMs = truthMsMax }) => catchUpMs))
  const active = await awaitTruth(lookUnder(cluster, []), activeMsMax)
  problems.push(...active.wrong.map((text) => `${seconds(activeMsMax)} after it was healed ${text}`))
  for (const { checkAfter } of faults) problems.push(...((await checkAfter?.(cluster)) ?? []))
  const { wrong: late } = await awaitTruth(changes.findMissing, faultMsMax)
  problems.push(...late.map((text) => `${seconds(faultMsMax)} after it was healed ${text}`), ...(await spread.measure()))
  problems.push(...listImpatience(cluster, faults, since))
  const noticed = cluster.notices.since(since).length
  return { text: textOf(faults), problems, noticed, toldAfterMs, activeAfterMs: active.ms }
}

export function textOf(faults: readonly Fault[]): string {
  return faults.map(({ text }) => text).join(', and meanwhile ')
}

function lookUnder(cluster: Cluster, faults: readonly Fault[], told?: Told): Find {
  const truth = faults.length === 0 ? allActive : truthUnder(faults, cluster)
  const controls = faults.length === 0 ? controlNames : tellingControls(faults)
  return async () => [
    ...(await findUntruths(cluster, controls, truth, told)),
    ...(hasRightRecords(faults) ? await findWrongRecords(cluster, (endpoint) => servingNodes(faults, endpoint)) : []),
  ]
}

/** Returns what clients must not notice. */
function listImpatience({ endpoints, waits, notices }: Cluster, faults: readonly Fault[], since: number): readonly string[] {
  return endpoints.flatMap((endpoint) => {
    const client = `clients of an endpoint in ${endpoint.region} (${endpoint.protocol})`
    const waited = waits.longest(endpoint.id, since)
    const noticed = mayBeNoticed(faults, endpoint) ? [] : notices.since(since, endpoint.id)
    return [
      ...(waited > waitMsMax && !stopsClients(faults, endpoint) ? [`${client} waited ${seconds(waited)}`] : []),
      ...(noticed.length > 0 ? [`${client} noticed it ${noticed.length} times: ${listSome(noticed)}`] : []),
    ]
  })
}
