/**
 * Whether the status of each endpoint is the truth, as control processes tell it.
 *
 * Law: `truthMsMax` after something happened each control process that can be reached says so, and goes on saying so.
 */
import { errorMessage } from '#lib/error-message.ts'
import type { EndpointStatus } from '#model/endpoint.ts'
import { within } from '../support/within.ts'
import type { Cluster, ClusterEndpoint } from './cluster.ts'
import type { ControlName } from './layout.ts'

export const truthMsMax = 10_000
const pollMs = 250
/** A control process that does not respond in this time cannot be reached. */
const requestMsMax = 5_000

export type Truth = {
  readonly status: EndpointStatus
  /** Texts that the reasons must contain, such as the id of a node. */
  readonly reasons: readonly string[]
}

/** Expected status of any endpoint while all is well. */
export const allActive = (): Truth => ({ status: 'active', reasons: [] })

/** From good to bad. */
const order: readonly EndpointStatus[] = ['active', 'degraded', 'failed']

/** Statuses that a control process reported for an endpoint while things got worse. */
export class Told {
  readonly #statuses = new Map<string, EndpointStatus[]>()

  note(who: string, status: EndpointStatus): void {
    const known = this.#statuses.get(who)
    if (known === undefined) this.#statuses.set(who, [status])
    else if (known.at(-1) !== status) known.push(status)
  }

  /** Returns which status got better meanwhile, or skipped one: `failed` comes after `degraded`. */
  findDetours(): readonly string[] {
    return [...this.#statuses].flatMap(([who, statuses]) => {
      const first = order.indexOf(statuses[0] ?? 'active')
      const isStraight = statuses.every((status, at) => order.indexOf(status) === first + at)
      return isStraight ? [] : [`${who}: ${statuses.join(', then ')}`]
    })
  }
}

/** Looks once, and returns all that is wrong. */
export type Find = () => Promise<readonly string[]>

/** Looks until nothing is wrong. Returns after how many milliseconds that was, or what is still wrong at the end of the time. */
export async function awaitTruth(
  find: Find,
  msMax = truthMsMax,
  pauseMs = pollMs,
): Promise<{ readonly ms: number; readonly wrong: readonly string[] }> {
  const since = performance.now()
  for (;;) {
    const wrong = await find()
    const ms = performance.now() - since
    if (wrong.length === 0 || ms > msMax) return { ms, wrong }
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** Looks for some time, and returns what was wrong at any point of it. */
export async function watchTruth(find: Find, forMs: number): Promise<readonly string[]> {
  const until = performance.now() + forMs
  const all = new Set<string>()
  while (performance.now() < until) {
    for (const wrong of await find()) all.add(wrong)
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
  return [...all]
}

/** Asks these control processes for the status of each endpoint. */
export async function findUntruths(
  cluster: Cluster,
  controls: readonly ControlName[],
  truthOf: (endpoint: ClusterEndpoint) => Truth,
  told = new Told(),
): Promise<readonly string[]> {
  const each = controls.flatMap((name) =>
    cluster.endpoints.map((endpoint) => ask(cluster, name, endpoint, { ...truthOf(endpoint), told })),
  )
  return (await Promise.all(each)).flat()
}

async function ask(
  cluster: Cluster,
  name: ControlName,
  { id, region, protocol }: ClusterEndpoint,
  { status: wanted, reasons: parts, told: all }: Truth & { readonly told: Told },
): Promise<readonly string[]> {
  const who = `${name} about an endpoint in ${region} (${protocol})`
  try {
    const { status, status_reasons } = await within(requestMsMax, cluster.clientOf(name).ok('GET', `/v1/endpoints/${id}`))
    if (wanted !== 'active') all.note(who, status)
    const reasons = status_reasons.join('; ')
    const told = `${who}: ${status}${reasons === '' ? '' : ` (${reasons})`}`
    if (status !== wanted) return [`${told}, not ${wanted}`]
    return parts.flatMap((part) => (reasons.includes(part) ? [] : [`${told}, without "${part}"`]))
  } catch (error) {
    return [`${who}: ${errorMessage(error)}`]
  }
}
