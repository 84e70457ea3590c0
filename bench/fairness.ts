/**
 * What a tenant notices while another one attacks: `node bench/fairness.ts [--short] [name of an attack]`
 *
 * For each attack two installations are started, one after the other. The victim sends 50 requests a second and calls the API five times a
 * second: in the first beside the attack, and in the second, as the floor, beside a process that takes as much processor time as the attacker
 * did, for nothing. Exits 1 if a bound is broken: everything of the victim is accepted, and its p99 and the lag of its commits are at most
 * twice those of the floor, beyond what a busy machine adds.
 */
import { setTimeout } from 'node:timers/promises'
import { Installation } from '../test/support/installation.ts'
import { type FairnessAttack, fairnessAttacks } from './fairness-attacks.ts'
import { Neighbour } from './neighbour.ts'
import { operatorToken, Sender, Tenant } from './tenants.ts'

const isShort = process.argv.includes('--short')
const only = process.argv.slice(2).find((argument) => !argument.startsWith('--'))
const seconds = isShort ? 5 : 20
const requestsPerSecond = 50
const apiCallsPerSecond = 5
/** How long the last commit of a run may take before it counts as missing. */
const commitTimeoutMs = 30_000
/** Bounds: times the floor, and what is not noticed on a machine with two busy cores. */
const ratioMax = 2
const slackMs = { request: 50, api: 100, lag: 3_000 }

const body = Array.from({ length: 10 }, (_, n) => JSON.stringify({ n, text: 'x'.repeat(1_000) })).join('\n')

type Figures = {
  readonly p50: number
  readonly p99: number
  readonly accepted: number
  readonly apiP99: number
  readonly lag: number
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.POSITIVE_INFINITY
}

/** Calls `step` at a fixed rate, however long each call takes. */
async function atRate<T>(perSecond: number, step: () => Promise<T>): Promise<readonly T[]> {
  const calls: Promise<T>[] = []
  const startedAt = performance.now()
  for (let call = 0; call < seconds * perSecond; call += 1) {
    await setTimeout(Math.max(0, startedAt + (call * 1000) / perSecond - performance.now()))
    calls.push(step())
  }
  return Promise.all(calls)
}

/** Measures a run of the victim. */
async function observe(victim: Tenant): Promise<Figures> {
  const sender = new Sender(victim, '127.0.0.1')
  const firstAcknowledged = new Map<number, number>()
  const sending = atRate(requestsPerSecond, async () => {
    const sent = await sender.send(body)
    if (sent.seq !== undefined && !firstAcknowledged.has(sent.seq)) firstAcknowledged.set(sent.seq, Date.now())
    return sent
  })
  const calling = atRate(apiCallsPerSecond, async () => {
    const startedAt = performance.now()
    const isAnswered = await victim.client.ok('GET', `/v1/endpoints/${victim.endpointId}`).then(Boolean, () => false)
    return isAnswered ? performance.now() - startedAt : Number.POSITIVE_INFINITY
  })
  const [sent, calls] = await Promise.all([sending, calling])
  sender.close()
  const accepted = sent.filter(({ status }) => status === 202)
  return {
    p50: quantile(
      accepted.map(({ ms }) => ms),
      0.5,
    ),
    p99: quantile(
      accepted.map(({ ms }) => ms),
      0.99,
    ),
    accepted: accepted.length / sent.length,
    apiP99: quantile(calls, 0.99),
    lag: await longestLag(victim, firstAcknowledged),
  }
}

/** From the first acknowledged request of a segment to its commit. */
async function longestLag({ client, endpointId }: Tenant, segments: ReadonlyMap<number, number>): Promise<number> {
  try {
    await client.committed(endpointId, segments.keys(), commitTimeoutMs)
  } catch {
    return Number.POSITIVE_INFINITY
  }
  const { items } = await client.ok('GET', `/v1/endpoints/${endpointId}/commits?limit=200`)
  const lags = (items as readonly { readonly seq: number; readonly uploaded_at: string }[]).map(
    ({ seq, uploaded_at }) => Date.parse(uploaded_at) - (segments.get(seq) ?? Number.POSITIVE_INFINITY),
  )
  return Math.max(...lags)
}

async function startInstallation(): Promise<Installation> {
  const installation = await Installation.create({
    environment: {
      INLET_LOG_LEVEL: 'error',
      INLET_OPERATOR_TOKEN: operatorToken,
      // Small, so that an attack needs seconds and not hours.
      INLET_DISK_BUDGET_BYTES: '128MiB',
      INLET_MAX_IN_FLIGHT_BYTES: '64MiB',
      INLET_MAX_CONNECTIONS: '500',
    },
  })
  await installation.start('start')
  return installation
}

/** Returns the figures of the victim, and how many cores its neighbour took meanwhile. */
async function observeBeside(victim: Tenant, neighbour: Neighbour): Promise<Figures & { readonly cores: number }> {
  await setTimeout(2_000)
  const [before, startedAt] = [await neighbour.coreSeconds(), performance.now()]
  const figures = await observe(victim)
  const cores = ((await neighbour.coreSeconds()) - before) / ((performance.now() - startedAt) / 1000)
  return { ...figures, cores }
}

async function attacked({ name, hasDestination }: FairnessAttack): Promise<Figures & { readonly cores: number }> {
  await using installation = await startInstallation()
  const victim = await Tenant.create(installation, 'victim', 'victim-lake')
  const attacker = await Tenant.create(installation, 'attacker', hasDestination ? 'attacker-lake' : null)
  await using neighbour = Neighbour.attacker(name, attacker)
  return await observeBeside(victim, neighbour)
}

async function undisturbed(cores: number): Promise<Figures> {
  await using installation = await startInstallation()
  const victim = await Tenant.create(installation, 'victim', 'victim-lake')
  await using neighbour = Neighbour.harmless(cores)
  return await observeBeside(victim, neighbour)
}

async function measure(attack: FairnessAttack): Promise<boolean> {
  const beside = await attacked(attack)
  return report(attack.name, await undisturbed(beside.cores), beside)
}

function report(name: string, floor: Figures, beside: Figures & { readonly cores: number }): boolean {
  const broken = [
    ...(beside.accepted < 1 ? ['acceptance'] : []),
    ...(isBeyond(beside.p99, floor.p99, slackMs.request) ? ['latency'] : []),
    ...(isBeyond(beside.apiP99, floor.apiP99, slackMs.api) ? ['API'] : []),
    ...(isBeyond(beside.lag, floor.lag, slackMs.lag) ? ['commits'] : []),
  ]
  const row = (what: string, { p50, p99, accepted, apiP99, lag }: Figures, comment: string) =>
    console.log(
      `  ${what.padEnd(48)}${milliseconds(p50)}${milliseconds(p99)}${`${(accepted * 100).toFixed(1)} %`.padStart(9)}${milliseconds(apiP99)}${milliseconds(lag)}  ${comment}`,
    )
  row(name, beside, broken.length === 0 ? '' : `broken: ${broken.join(', ')}`)
  row(`  beside ${beside.cores.toFixed(2)} cores of harmless work`, floor, `p99 ${(beside.p99 / floor.p99).toFixed(1)} times`)
  return broken.length === 0
}

function isBeyond(value: number, floor: number, slack: number): boolean {
  return !Number.isFinite(value) || value > Math.max(ratioMax * floor, floor + slack)
}

function milliseconds(value: number): string {
  return (Number.isFinite(value) ? `${value.toFixed(0)} ms` : '-').padStart(10)
}

console.log(`  ${'beside the attack'.padEnd(48)}       p50       p99 accepted   API p99  commit lag`)
let failed = 0
for (const attack of fairnessAttacks.filter(({ name }) => only === undefined || name.includes(only))) {
  if (!(await measure(attack))) failed += 1
}
console.log(failed === 0 ? '  goal reached: no attack is noticed' : `  goal missed: ${failed} attacks are noticed`)
if (failed > 0) process.exitCode = 1
