import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { type Benchmark, cost, isWanted, rate, say } from './figures.ts'
import type { Job, LoadMessage, Outcome } from './http-ingest-load.ts'
import { median, Scratch } from './measure.ts'
import { ask, cores, next, type ServerMessage, start, stop, usageOf } from './rig.ts'

const eventBytes = 250
const cases = [
  { events: 1, connections: 512 },
  { events: 100, connections: 64 },
  { events: 4_000, connections: 12 },
] as const
const kinds = ['floor', 'inlet'] as const
type Kind = (typeof kinds)[number]
const goal = 0.85

type Round = { readonly requestsPerSecond: number; readonly cpuMicrosPerRequest: number }

export const benchmark: Benchmark = {
  about: `Events of ${eventBytes} bytes over HTTP, durable before the response; the server on one core, the load on another, rounds in turn. The floor is a bare node:http server that reads the body and responds 202 after a writev and an fdatasync that all waiting requests share.`,
  async *measure(options) {
    say(cores)
    await using stack = new AsyncDisposableStack()
    const servers = stack.use(await startServers(kinds))
    const load = start(1, [process.execPath, join(import.meta.dirname, 'http-ingest-load.ts')])
    stack.defer(() => void load.kill())

    const rounds = options.rounds ?? 5
    const [warmUpMs, measureMs] = options.isQuick ? [300, 700] : [500, 1_500]
    for (const { events, connections } of cases) {
      const name = `${events} ${events === 1 ? 'event' : 'events'} a request, ${connections} connections`
      if (!isWanted(name, options)) continue
      say(name)
      const results: Record<Kind, Round[]> = { floor: [], inlet: [] }
      for (let round = 0; round < rounds; round += 1) {
        for (const [kind, { child, url }] of servers.of) {
          results[kind].push(await measure(load, child, { url, connections, events, eventBytes, warmUpMs, measureMs }))
        }
      }
      const of = (kind: Kind, what: keyof Round) => median(results[kind].map((result) => result[what]))
      const [ours, floor] = [of('inlet', 'requestsPerSecond') * events, of('floor', 'requestsPerSecond') * events]
      yield rate({ work: name, unit: 'events/s', ours, floor, goal: { ratio: goal } })
      yield cost({
        work: `${name}: CPU a request`,
        unit: 'µs',
        ours: of('inlet', 'cpuMicrosPerRequest'),
        floor: of('floor', 'cpuMicrosPerRequest'),
      })
    }
  },
}

/** Starts the servers to compare, each on a new directory. */
export async function startServers<Kind extends string>(kinds: readonly Kind[]) {
  const stack = new AsyncDisposableStack()
  const scratch = stack.use(await Scratch.create())
  const of = new Map<Kind, { readonly child: ChildProcess; readonly url: string }>()
  for (const kind of kinds) {
    const directory = await scratch.make(kind)
    const program = join(import.meta.dirname, 'http-ingest-servers.ts')
    const child = start(0, [process.execPath, ...process.execArgv, program, kind, directory])
    stack.defer(() => stop(child))
    const { ready: url } = (await next(child)) as ServerMessage & { ready: string }
    of.set(kind, { child, url })
  }
  return { of, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

async function measure(load: ChildProcess, server: ChildProcess, job: Job): Promise<Round> {
  load.send(job)
  await next(load)
  const before = await ask(server, 'usage')
  const { outcome } = (await next(load)) as LoadMessage & { outcome: Outcome }
  const after = await ask(server, 'usage')
  await ask(server, 'clean')
  return {
    requestsPerSecond: outcome.requests / outcome.seconds,
    cpuMicrosPerRequest: (usageOf(after) - usageOf(before)) / outcome.requests,
  }
}
