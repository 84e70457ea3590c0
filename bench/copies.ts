import { join } from 'node:path'
import type { GatewayAnswer, GatewayQuestion } from './copy-gateway.ts'
import { type Benchmark, cost, isWanted, rate, say } from './figures.ts'
import type { Job, LoadMessage, Outcome } from './http-ingest-load.ts'
import type { LatencyJob, LatencyMessage } from './latency-load.ts'
import { median, Scratch } from './measure.ts'
import { ask, cores, next, type ServerMessage, start, stop, usageOf } from './rig.ts'

const eventBytes = 250
/** So many connections that both are busy: a record that waits for its copy takes longer. */
const loads = [
  { events: 1, connections: 4_000 },
  { events: 100, connections: 1_000 },
  { events: 4_000, connections: 48 },
] as const
/** Added to each answer of the gateway. */
const delaysMs = [0, 5, 50, 200]
/** A node that has something to do and is far from its bounds. */
const perSecond = 500
const goal = 0.8

/** S3 Standard, in dollars a thousand requests. */
const price = { put: 0.005, head: 0.0004 }
const secondsPerMonth = 30 * 86_400

export const benchmark: Benchmark = {
  about: `An endpoint with two copies beside the same with one, which is the floor: events of ${eventBytes} bytes over HTTP, the node on one core, the load and a small S3 gateway in memory on another, rounds in turn. Then the time to the acknowledgement at ${perSecond} requests a second, if the gateway takes longer for each answer: a record waits for its window (100 ms, or 10 ms on a quiet node), a put and a HEAD, and the floor is the put and the HEAD alone.`,
  async *measure(options) {
    say(cores)
    await using stack = new AsyncDisposableStack()
    const scratch = stack.use(await Scratch.create())
    const child = (core: number, program: string, ...args: readonly string[]) =>
      start(core, [process.execPath, ...process.execArgv, join(import.meta.dirname, program), ...args])
    const gateway = child(1, 'copy-gateway.ts')
    stack.defer(() => void gateway.kill())
    const { ready: gatewayUrl } = (await next(gateway)) as ServerMessage & { ready: string }
    const count = async (question: GatewayQuestion) => {
      const answer = next(gateway)
      gateway.send(question)
      return (await answer) as GatewayAnswer
    }
    const servers = []
    for (const copies of ['1', '2']) {
      const server = child(0, 'copies-servers.ts', copies, await scratch.make(copies), gatewayUrl)
      stack.defer(() => stop(server))
      servers.push({ server, url: ((await next(server)) as ServerMessage & { ready: string }).ready })
    }
    const [closed, open] = ['http-ingest-load.ts', 'latency-load.ts'].map((program) => child(1, program))
    stack.defer(() => void closed?.kill())
    stack.defer(() => void open?.kill())
    const [one, two] = servers
    if (closed === undefined || open === undefined || one === undefined || two === undefined) return

    const rounds = options.rounds ?? (options.isQuick ? 3 : 5)
    const [warmUpMs, measureMs] = options.isQuick ? [500, 1_000] : [1_000, 3_000]
    for (const { events, connections } of loads) {
      const name = `${events} ${events === 1 ? 'event' : 'events'} a request, ${connections} connections`
      if (!isWanted(name, options)) continue
      say(name)
      const results = [one, two].map((each) => ({ ...each, perSecond: [] as number[], cpu: [] as number[] }))
      for (let round = 0; round < rounds; round += 1) {
        for (const { server, url, ...result } of results) {
          closed.send({ url, connections, events, eventBytes, warmUpMs, measureMs } satisfies Job)
          await next(closed)
          const before = await ask(server, 'usage')
          const { outcome } = (await next(closed)) as LoadMessage & { outcome: Outcome }
          result.cpu.push((usageOf(await ask(server, 'usage')) - usageOf(before)) / outcome.requests)
          result.perSecond.push((outcome.requests * events) / outcome.seconds)
          await ask(server, 'clean')
        }
      }
      const [floor, ours] = results
      yield rate({
        ...{ work: name, unit: 'events/s', goal: { ratio: goal } },
        ...{ ours: median(ours?.perSecond ?? []), floor: median(floor?.perSecond ?? []) },
      })
      const work = `${name}: CPU a request`
      yield cost({ work, unit: 'µs', ours: median(ours?.cpu ?? []), floor: median(floor?.cpu ?? []) })
    }

    for (const delayMs of delaysMs) {
      const name = `gateway with ${delayMs} ms more, ${perSecond} requests/s`
      if (!isWanted(name, options)) continue
      say(name)
      await count({ delayMs })
      const job = { url: two.url, connections: 512, events: 1, eventBytes, perSecond, warmUpMs: 1_000 }
      open.send({ ...job, measureMs: options.isQuick ? 3_000 : 10_000 } satisfies LatencyJob)
      const startedAt = performance.now()
      const { fromDue } = (await next(open)) as LatencyMessage
      const seconds = (performance.now() - startedAt) / 1_000
      const { requests } = await count({})
      const [puts, heads] = [(requests['PUT'] ?? 0) / seconds, (requests['HEAD'] ?? 0) / seconds]
      const floor = await timeOfStore(gatewayUrl)
      await ask(two.server, 'clean')
      const dollars = (secondsPerMonth * (puts * price.put + heads * price.head)) / 1_000
      yield cost({ work: `${name}: p50`, unit: 'ms', ours: fromDue.p50, floor })
      const parts = { 'puts a second': puts, 'HEADs a second': heads, 'dollars a month on S3': dollars }
      yield cost({ work: `${name}: p99`, unit: 'ms', ours: fromDue.p99, floor, parts })
    }
  },
}

/** Returns the median time of a put and a HEAD after it, in milliseconds. */
async function timeOfStore(gatewayUrl: string): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < 11; n += 1) {
    const startedAt = performance.now()
    for (const method of ['PUT', 'HEAD']) {
      const body = method === 'PUT' ? { body: 'x'.repeat(10_000) } : {}
      await (await fetch(`${gatewayUrl}/floor/${n}`, { method, ...body })).arrayBuffer()
    }
    times.push(performance.now() - startedAt)
  }
  return median(times)
}
