/**
 * Nodes without a data plane: each has an id and a credential of its own, and calls control as a real one does.
 *
 * Owns: joining, and calls with bodies that are built beforehand, so that the simulation costs little of the machine that it measures.
 */
import { Agent, request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { newNodeSecret, printNodeCredential } from '../../src/auth/node-credential.ts'
import { newId } from '../../src/model/id.ts'
import type { FilledEndpoint } from './fill.ts'
import type { Installation } from './installation.ts'

export type SimulatedNode = {
  readonly id: string
  readonly region: string
  readonly token: string
  /** The endpoints of its region. */
  readonly endpoints: readonly FilledEndpoint[]
}

export type Answer = { readonly status: number; readonly body: Buffer }

const joinsParallel = 16
const pollSpacingMs = 2
const retryMsMax = 1_000

export class Fleet {
  readonly nodes: readonly SimulatedNode[]
  readonly #url: string
  readonly #agent = new Agent({ keepAlive: true })

  private constructor(url: string, nodes: readonly SimulatedNode[]) {
    this.#url = url
    this.nodes = nodes
  }

  static async join({ nodeApiUrl, joinSecret, regions, endpoints }: Installation, count: number): Promise<Fleet> {
    const byRegion = Map.groupBy(endpoints, ({ region }) => region)
    const secrets = Array.from({ length: count }, newNodeSecret)
    const nodes = secrets.map((secret, index) => {
      const [id, region] = [newId(), regions[index % regions.length] ?? '']
      return { id, region, token: printNodeCredential(id, secret), endpoints: byRegion.get(region) ?? [] }
    })
    const fleet = new Fleet(nodeApiUrl, nodes)
    await inParallel(joinsParallel, nodes, async ({ id, region }, index) => {
      const address = `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`
      const place = { region, ipv4: [address], ipv6: [], ingest_address: `${address}:443` }
      const join = { ...place, node_id: id, secret: secrets[index], previous_secret: null }
      await fleet.call(joinSecret, 'join', JSON.stringify(join))
    })
    return fleet
  }

  /** Calls the node API. Throws for any status but 200 and 204. */
  async call(token: string, path: string, ...body: readonly (string | Buffer)[]): Promise<Answer> {
    const answer = await this.#send(token, path, body)
    if (answer.status === 200 || answer.status === 204) return answer
    throw new Error(`control rejected ${path}: ${answer.status} ${answer.body.toString().slice(0, 500)}`)
  }

  /** Waits for a change, and asks again as a node does when control is busy. Calls of many nodes begin a few at a time. */
  async longPoll(turn: number, token: string, body: string): Promise<Buffer> {
    await setTimeout(turn * pollSpacingMs)
    for (;;) {
      const { status, body: answer } = await this.#send(token, 'snapshot', [body])
      if (status === 200) return answer
      if (status !== 408 && status !== 503) throw new Error(`control rejected a poll: ${status} ${answer}`)
      await setTimeout(Math.random() * retryMsMax)
    }
  }

  /** Resolves when so many polls have begun. */
  async untilPolled(polls: number): Promise<void> {
    await setTimeout(polls * pollSpacingMs)
  }

  /** Calls as often as it can for so many seconds, with the nodes in turn. Returns the number of calls. */
  async callFor(
    seconds: number,
    parallel: number,
    path: string,
    bodyOf: (node: SimulatedNode, call: number) => string | Buffer,
  ): Promise<number> {
    const until = performance.now() + seconds * 1000
    let calls = 0
    const worker = async () => {
      while (performance.now() < until) {
        const node = this.nodes[calls % this.nodes.length]
        if (node === undefined) return
        calls += 1
        await this.call(node.token, path, bodyOf(node, calls))
      }
    }
    await Promise.all(Array.from({ length: parallel }, worker))
    return calls
  }

  /** Calls once as each node. */
  async callEach(parallel: number, path: string, bodyOf: (node: SimulatedNode, call: number) => string): Promise<void> {
    await inParallel(parallel, this.nodes, (node) => this.call(node.token, path, bodyOf(node, 0)))
  }

  close(): void {
    this.#agent.destroy()
  }

  #send(token: string, path: string, body: readonly (string | Buffer)[]): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const length = body.reduce((sum, part) => sum + Buffer.byteLength(part), 0)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': length }
    const outgoing = request(`${this.#url}/internal/v1/${path}`, { method: 'POST', agent: this.#agent, headers })
    outgoing.once('error', reject)
    outgoing.once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) }))
    })
    for (const part of body) outgoing.write(part)
    outgoing.end()
    return promise
  }
}

async function inParallel<T>(
  parallel: number,
  items: readonly T[],
  work: (item: T, index: number) => Promise<unknown>,
): Promise<void> {
  const entries = items.entries()
  const worker = async () => {
    for (const [index, item] of entries) await work(item, index)
  }
  await Promise.all(Array.from({ length: parallel }, worker))
}
