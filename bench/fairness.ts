import { setTimeout } from 'node:timers/promises'
import { Installation } from '../test/support/installation.ts'
import { type FairnessAttack, fairnessAttacks } from './fairness-attacks.ts'
import { type Benchmark, cost, type Figure, isWanted, rate, say } from './figures.ts'
import { Neighbour } from './neighbour.ts'
import { operatorToken, Sender, Tenant } from './tenants.ts'

const requestsPerSecond = 50
const apiCallsPerSecond = 5
/** How long the last commit of a run may take before it counts as missing. */
const commitTimeoutMs = 30_000
/** Bounds: times the floor, and what is not noticed on a machine with two busy cores. */
const ratioMax = 2
const slackMs = { request: 50, api: 100, lag: 3_000 }

const body = Array.from({ length: 10 }, (_, n) => JSON.stringify({ n, text: 'x'.repeat(1_000) })).join('\n')

export const benchmark: Benchmark = {
  about: `What a tenant notices while another one attacks. For each attack two installations are started, one after the other. The victim sends ${requestsPerSecond} requests a second and calls the API ${apiCallsPerSecond} times a second: in the first beside the attack, and in the second, as the floor, beside a process that takes as much processor time as the attacker did, for nothing. Bounds: twice the floor, beyond what a busy machine adds.`,
  async *measure(options) {
    const seconds = options.isQuick ? 5 : 20
    for (const attack of fairnessAttacks) {
      if (!isWanted(attack.name, options)) continue
      const beside = await attacked(attack, seconds)
      say(`${attack.name}: took ${beside.cores.toFixed(2)} cores`)
      yield* figures(attack.name, beside, await undisturbed(beside.cores, seconds))
    }
  },
}

type Figures = {
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
async function atRate<T>(seconds: number, perSecond: number, step: () => Promise<T>): Promise<readonly T[]> {
  const calls: Promise<T>[] = []
  const startedAt = performance.now()
  for (let call = 0; call < seconds * perSecond; call += 1) {
    await setTimeout(Math.max(0, startedAt + (call * 1000) / perSecond - performance.now()))
    calls.push(step())
  }
  return Promise.all(calls)
}

/** Measures a run of the victim. */
async function observe(victim: Tenant, seconds: number): Promise<Figures> {
  const sender = new Sender(victim, '127.0.0.1')
  const firstAcknowledged = new Map<number, number>()
  const sending = atRate(seconds, requestsPerSecond, async () => {
    const sent = await sender.send(body)
    if (sent.seq !== undefined && !firstAcknowledged.has(sent.seq)) firstAcknowledged.set(sent.seq, Date.now())
    return sent
  })
  const calling = atRate(seconds, apiCallsPerSecond, async () => {
    const startedAt = performance.now()
    const isAnswered = await victim.client.ok('GET', `/v1/endpoints/${victim.endpointId}`).then(Boolean, () => false)
    return isAnswered ? performance.now() - startedAt : Number.POSITIVE_INFINITY
  })
  const [sent, calls] = await Promise.all([sending, calling])
  sender.close()
  const accepted = sent.filter(({ status }) => status === 202)
  return {
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
async function observeBeside(
  victim: Tenant,
  neighbour: Neighbour,
  seconds: number,
): Promise<Figures & { readonly cores: number }> {
  await setTimeout(2_000)
  const [before, startedAt] = [await neighbour.coreSeconds(), performance.now()]
  const figures = await observe(victim, seconds)
  const cores = ((await neighbour.coreSeconds()) - before) / ((performance.now() - startedAt) / 1000)
  return { ...figures, cores }
}

async function attacked(
  { name, hasDestination }: FairnessAttack,
  seconds: number,
): Promise<Figures & { readonly cores: number }> {
  await using installation = await startInstallation()
  const victim = await Tenant.create(installation, 'victim', 'victim-lake')
  const attacker = await Tenant.create(installation, 'attacker', hasDestination ? 'attacker-lake' : null)
  await using neighbour = Neighbour.attacker(name, attacker)
  return await observeBeside(victim, neighbour, seconds)
}

async function undisturbed(cores: number, seconds: number): Promise<Figures> {
  await using installation = await startInstallation()
  const victim = await Tenant.create(installation, 'victim', 'victim-lake')
  await using neighbour = Neighbour.harmless(cores)
  return await observeBeside(victim, neighbour, seconds)
}

function* figures(attack: string, beside: Figures, floor: Figures): Generator<Figure> {
  const percent = { unit: '%', ours: beside.accepted * 100, floor: floor.accepted * 100, goal: { ours: 100 } }
  yield rate({ work: `${attack}: accepted`, ...percent })
  const delay = (what: string, of: 'p99' | 'apiP99' | 'lag', slack: number) =>
    cost({
      work: `${attack}: ${what}`,
      unit: 'ms',
      ours: beside[of],
      floor: floor[of],
      goal: { ours: Math.max(ratioMax * floor[of], floor[of] + slack) },
    })
  yield delay('p99', 'p99', slackMs.request)
  yield delay('p99 of the API', 'apiP99', slackMs.api)
  yield delay('lag of commits', 'lag', slackMs.lag)
}
