/**
 * How fast a change of the configuration reaches nodes.
 *
 * Owns: changes of each kind, made through one control process, and when each node works by them. Does not own: when they are made.
 * Law: a change is applied within `quietMsMax` on all nodes. While a fault lasts, and after it, `faultMsMax` is allowed: on the nodes that
 * control reaches, and on the others from the end of the fault.
 */
import { readFileSync } from 'node:fs'
import { Agent } from 'node:https'
import type { ApiResponse } from '../support/api-client.ts'
import type { Random } from '../torture/random.ts'
import { seconds } from '../torture/text.ts'
import type { Cluster } from './cluster.ts'
import {
  type ControlName,
  controlNames,
  type NodeName,
  nodeNames,
  nodesOf,
  type RegionCode,
  regionOf,
  regions,
} from './layout.ts'
import { postTo } from './load/direct.ts'
import { awaitTruth, type Find } from './truth.ts'

export const quietMsMax = 2_000
export const faultMsMax = 30_000
const pollMs = 25
const requestMsMax = 1_000
/** A control process that has lost its database is without it for moments. */
const retryMsMax = 10_000

export type Change = {
  readonly text: string
  /** Before the request that made it. */
  readonly madeAt: number
  readonly nodes: readonly NodeName[]
  isAppliedBy(name: NodeName): Promise<boolean>
}

type UnderFault = {
  readonly problems: readonly string[]
  /** Finds what the other nodes still lack. */
  readonly findMissing: Find
}

type Made = { readonly madeAt: number; readonly body: ApiResponse['body'] }

export class Spread {
  readonly #cluster: Cluster
  readonly #random: Random
  /** Connections stay open: a handshake for each question would take longer than the spread. */
  readonly #agent = new Agent({ keepAlive: true, rejectUnauthorized: false })
  /** Milliseconds of each change. */
  readonly quiet: number[] = []
  readonly underFault: number[] = []

  constructor(cluster: Cluster, random: Random) {
    this.#cluster = cluster
    this.#random = random
  }

  /** Makes a change of each kind without a fault. Returns what took too long. */
  async measure(): Promise<readonly string[]> {
    return await this.#makeEach(controlNames, this.#random.pick(regions), (change) =>
      this.#await(change, change.nodes, quietMsMax, this.quiet),
    )
  }

  /** Makes a change of each kind while only these are reached. Returns what took too long, and what waits for the other nodes. */
  async measureUnder(controls: readonly ControlName[], reached: readonly NodeName[]): Promise<UnderFault> {
    const changes: Change[] = []
    if (controls.length === 0) return { problems: [], findMissing: async () => [] }
    const region = this.#random.pick(reached.length === 0 ? regions : reached.map(regionOf))
    const problems = await this.#makeEach(controls, region, async (change) => {
      changes.push(change)
      const nodes = change.nodes.filter((name) => reached.includes(name))
      return await this.#await(change, nodes, faultMsMax, this.underFault)
    })
    const findMissing = async () => {
      const found = await Promise.all(changes.map((change) => findMissingFrom(change, change.nodes)))
      return found.flat()
    }
    return { problems, findMissing }
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }

  /** Makes one after the other: the next when the last is applied. Returns the problems. */
  async #makeEach(
    controls: readonly ControlName[],
    region: RegionCode,
    check: (change: Change) => Promise<readonly string[]>,
  ): Promise<readonly string[]> {
    const control = this.#random.pick(controls)
    const problems: string[] = []
    try {
      for await (const change of this.#changes(control, region)) problems.push(...(await check(change)))
    } catch (error) {
      problems.push(String(error))
    }
    return problems
  }

  async *#changes(control: ControlName, region: RegionCode): AsyncGenerator<Change> {
    const destination_id = this.#cluster.destinationId
    const endpoint = await this.#make(control, '/v1/endpoints', { region, destination_id })
    const host = endpoint.body.ingest_host
    const own = this.#cluster.installation.apiKey
    const change = (kind: string, { madeAt }: Made, isAppliedBy: Change['isAppliedBy']): Change => ({
      text: `a new ${kind}, made through ${control},`,
      madeAt,
      // A key is for every region of its account.
      nodes: kind === 'key' ? nodeNames : nodesOf(region),
      isAppliedBy,
    })
    yield change('endpoint', endpoint, (name) => this.#isAccepted(name, host, own))
    const key = await this.#make(control, '/v1/keys', { name: 'spread', scopes: ['ingest'] })
    yield change('key', key, (name) => this.#isAccepted(name, host, key.body.api_key))
    const view_id = this.#cluster.viewId
    const binding = await this.#make(control, `/v1/endpoints/${endpoint.body.id}/views`, { view_id })
    yield change('binding', binding, async (name) => this.#isStored(name, binding.body.id))
  }

  async #await(change: Change, nodes: readonly NodeName[], msMax: number, times: number[]): Promise<readonly string[]> {
    const { tookMs, problems } = await awaitApplied(change, nodes, msMax)
    if (nodes.length > 0) times.push(tookMs)
    return problems
  }

  /** A request without a body is rejected by a node that knows its key and its endpoint: there is nothing to store. */
  async #isAccepted(name: NodeName, host: string, apiKey: string): Promise<boolean> {
    const post = { host, apiKey, body: '', agent: this.#agent, timeoutMs: requestMsMax }
    try {
      const { status } = await postTo(this.#cluster.host(name), post)
      return status === 422
    } catch {
      return false
    }
  }

  /** Delivery applies a configuration in the moment in which it has stored it. */
  #isStored(name: NodeName, id: string): boolean {
    try {
      return readFileSync(this.#cluster.path(`${name}/node/delivery-snapshot.ndjson`), 'utf8').includes(id)
    } catch {
      return false
    }
  }

  async #make(control: ControlName, path: string, body?: unknown): Promise<Made> {
    const deadline = performance.now() + retryMsMax
    for (;;) {
      const madeAt = performance.now()
      const response = await this.#cluster
        .clientOf(control)
        .request('POST', path, body)
        .catch((error) => ({ status: 599, body: String(error) }))
      if (response.status < 300) return { madeAt, body: response.body }
      if (response.status < 500 || performance.now() > deadline) {
        throw new Error(`${control}: POST ${path}: ${response.status} ${JSON.stringify(response.body)}`)
      }
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    }
  }
}

/** Waits for these nodes, also beyond the bound, so that the finding says how long it took. */
export async function awaitApplied(change: Change, nodes: readonly NodeName[], msMax: number, giveUpMs = faultMsMax) {
  const spentMs = performance.now() - change.madeAt
  const { ms, wrong } = await awaitTruth(() => findMissingFrom(change, nodes), giveUpMs, pollMs)
  const tookMs = spentMs + ms
  const late = tookMs <= msMax ? [] : [`${change.text} was applied only after ${seconds(tookMs)}`]
  return { tookMs, problems: wrong.length > 0 ? wrong.map((text) => `${seconds(giveUpMs)} later ${text}`) : late }
}

async function findMissingFrom({ text, isAppliedBy }: Change, nodes: readonly NodeName[]): Promise<readonly string[]> {
  const missing = await Promise.all(nodes.map(async (name) => ((await isAppliedBy(name)) ? [] : [`${text} is not on ${name}`])))
  return missing.flat()
}
