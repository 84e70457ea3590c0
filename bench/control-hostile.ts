import { setTimeout } from 'node:timers/promises'
import { Installation } from '../test/support/installation.ts'
import { type Attack, attacks, type HostileRequest } from './control-attacks.ts'
import { type Benchmark, cost, isWanted, say } from './figures.ts'

const goalMs = 100
const slowMs = 60_000

type Outcome = {
  readonly delayMs: number
  readonly tookMs: number
  readonly bytes: number
  readonly statuses: ReadonlySet<number>
}
/** Where attacks go to, and as whom. */
type Target = { readonly apiUrl: string; readonly token: string }

const harmless: Attack = {
  name: 'harmless requests',
  requests: () => Array.from({ length: 20 }, () => ({ method: 'GET', path: '/v1/views' })),
}

export const benchmark: Benchmark = {
  about:
    'How long hostile requests hold the event loop of control. Each attack is sent to a control process of its own account, from outside. The figure is the longest delay of its event loop that the process measured meanwhile, the best of several rounds. The floor is the same for as many harmless requests.',
  async *measure(options) {
    await using installation = await Installation.create({ environment: { INLET_LOG_LEVEL: 'error' } })
    await installation.start('control')
    await installation.ok('GET', '/v1/views')
    const target = { apiUrl: installation.apiUrl, token: await tokenOf(installation) }
    const rounds = options.rounds ?? 3
    const floor = await measure(target, harmless, rounds)
    for (const attack of attacks) {
      if (!isWanted(attack.name, options)) continue
      const ours = await measure(target, attack, rounds)
      yield cost({ work: attack.name, unit: 'ms', ours, floor, goal: { ours: Math.max(goalMs, 2 * floor) } })
    }
  },
}

async function tokenOf({ apiUrl, apiKey }: Installation): Promise<string> {
  const exchange = await fetch(`${apiUrl}/v1/token/exchange`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ api_key: apiKey, scope: 'admin', ttl: '1h' }),
  })
  return ((await exchange.json()) as { access_token: string }).access_token
}

/** Returns the longest delay since the last call. */
async function longestDelay(apiUrl: string): Promise<number> {
  // The delay is known once the loop has turned.
  await setTimeout(50)
  const text = await (await fetch(`${apiUrl}/metrics`)).text()
  return Number(/^nodejs_eventloop_lag_max_seconds\{.*\} (\S+)$/m.exec(text)?.[1]) * 1000
}

async function send(
  { apiUrl, token }: Target,
  { method, path, body }: HostileRequest,
): Promise<{ status: number; bytes: number }> {
  const headers = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
  const signal = AbortSignal.timeout(slowMs)
  try {
    const response = await fetch(apiUrl + path, { method, headers, signal, ...(body === undefined ? {} : { body }) })
    return { status: response.status, bytes: (await response.arrayBuffer()).byteLength }
  } catch {
    // The server may close the connection of a body that it refuses.
    return { status: 0, bytes: 0 }
  }
}

async function attack(target: Target, requests: readonly HostileRequest[]): Promise<Outcome> {
  await longestDelay(target.apiUrl)
  // After a reset, the monitor misses what begins before its timer has fired.
  await setTimeout(50)
  const startedAt = performance.now()
  const answers = await Promise.all(requests.map((request) => send(target, request)))
  const tookMs = performance.now() - startedAt
  return {
    delayMs: await longestDelay(target.apiUrl),
    tookMs,
    bytes: Math.max(...answers.map(({ bytes }) => bytes)),
    statuses: new Set(answers.map(({ status }) => status)),
  }
}

/** Returns the longest delay in the best of several rounds, in milliseconds. */
async function measure(target: Target, { name, requests }: Attack, rounds: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round += 1) {
    const { delayMs, tookMs, bytes, statuses } = await attack(target, requests(round))
    say(
      `${name}: ${delayMs.toFixed(0)} ms; answered in ${tookMs.toFixed(0)} ms: ${[...statuses].join(' ')}, ${(bytes / 1e3).toFixed(0)} kB`,
    )
    best = Math.min(best, delayMs)
    // Nobody else on the machine is to blame for seconds.
    if (best <= goalMs || delayMs > 20 * goalMs) break
  }
  return best
}
