import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { type Benchmark, cost, isWanted, rate, say } from './figures.ts'
import { startServers } from './http-ingest.ts'
import type { Job, LoadMessage, Outcome } from './http-ingest-load.ts'
import type { LatencyJob, LatencyMessage } from './latency-load.ts'
import { median } from './measure.ts'
import type { Percentiles } from './open-loop.ts'
import { ask, cores, next, start } from './rig.ts'

const eventBytes = 250
const cases = [
  { events: 1, connections: 512 },
  { events: 100, connections: 64 },
] as const
const shares = [0.1, 0.5, 0.9]
const kinds = ['floor', 'inlet'] as const
type Kind = (typeof kinds)[number]

export const benchmark: Benchmark = {
  about: `From the time when a request of ${eventBytes}-byte events should have been sent to its acknowledgement, at 10, 50 and 90 % of what the server reaches with the same connections. Arrivals are a Poisson process that does not wait for the server, so a stall counts for every request that was due meanwhile. The server on one core, the load on another, rounds in turn. The floor is a bare node:http server that responds after a writev and an fdatasync that all waiting requests share, at the same share of its own capacity.`,
  async *measure(options) {
    say(cores)
    await using stack = new AsyncDisposableStack()
    const servers = stack.use(await startServers(kinds))
    const [closed, open] = ['http-ingest-load.ts', 'latency-load.ts'].map((program) => {
      const child = start(1, [process.execPath, join(import.meta.dirname, program)])
      stack.defer(() => void child.kill())
      return child
    }) as [ChildProcess, ChildProcess]

    const rounds = options.rounds ?? (options.isQuick ? 1 : 3)
    const [warmUpMs, measureMs] = options.isQuick ? [300, 1_000] : [500, 2_000]
    for (const { events, connections } of cases) {
      const name = `${events} ${events === 1 ? 'event' : 'events'} a request`
      if (!isWanted(name, options)) continue
      say(name)
      const job = { connections, events, eventBytes, warmUpMs, measureMs }
      const results: Record<Kind, Round[]> = { floor: [], inlet: [] }
      for (let round = 0; round < rounds; round += 1) {
        for (const [kind, { child, url }] of servers.of) {
          results[kind].push(await measure({ closed, open, server: child, job: { ...job, url } }))
        }
      }
      const of = (kind: Kind, value: (round: Round) => number | undefined) =>
        median(results[kind].map((round) => value(round) ?? Number.NaN))
      const both = (value: (round: Round) => number | undefined) => ({ ours: of('inlet', value), floor: of('floor', value) })
      yield rate({ work: `${name}: capacity`, unit: 'requests/s', ...both(({ capacity }) => capacity) })
      for (const [index, share] of shares.entries()) {
        const work = `${name}, ${share * 100} % of capacity`
        yield cost({ work: `${work}: p50`, unit: 'ms', ...both(({ latencies }) => latencies[index]?.p50) })
        const [p999, max] = [both(({ latencies }) => latencies[index]?.p999), both(({ latencies }) => latencies[index]?.max)]
        const parts = { 'p99.9': p999.ours, max: max.ours, 'floor p99.9': p999.floor, 'floor max': max.floor }
        yield cost({ work: `${work}: p99`, unit: 'ms', ...both(({ latencies }) => latencies[index]?.p99), parts })
      }
    }
  },
}

type Round = { readonly capacity: number; readonly latencies: readonly Percentiles[] }

/** Measures the capacity right before the shares of it, because other work on the machine changes it. */
async function measure({
  closed,
  open,
  server,
  job,
}: {
  readonly closed: ChildProcess
  readonly open: ChildProcess
  readonly server: ChildProcess
  readonly job: Job
}): Promise<Round> {
  closed.send(job)
  await next(closed)
  const { outcome } = (await next(closed)) as LoadMessage & { outcome: Outcome }
  await ask(server, 'clean')
  const capacity = outcome.requests / outcome.seconds
  const latencies: Percentiles[] = []
  for (const share of shares) {
    open.send({ ...job, perSecond: share * capacity } satisfies LatencyJob)
    latencies.push(((await next(open)) as LatencyMessage).fromDue)
    await ask(server, 'clean')
  }
  return { capacity, latencies }
}
