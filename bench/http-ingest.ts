/**
 * HTTP ingest compared with its floor: a bare node:http server that reads the body and responds 202 after a writev and an fdatasync that
 * all waiting requests share. Both run in every round, one after the other, on one core. The load comes from another core.
 *
 * `node bench/http-ingest.ts [rounds] [events a request, to run one case only]`. BENCH_PROFILE=DIRECTORY writes a CPU profile of the Inlet server there.
 */
import type { ChildProcess } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Job, LoadMessage, Outcome } from './http-ingest-load.ts'
import { inScratch } from './measure.ts'
import { ask, median, next, pinned, type ServerMessage, start, stop, usageOf } from './rig.ts'

const eventBytes = 250
const cases = [
  { events: 1, connections: 512 },
  { events: 100, connections: 64 },
  { events: 4_000, connections: 12 },
] as const
const kinds = ['floor', 'inlet'] as const
const goal = 0.85
const warmUpMs = 500
const measureMs = 1_500

type Round = { readonly requestsPerSecond: number; readonly cpuMicrosPerRequest: number }

const rounds = Number(process.argv[2] ?? 5)
const only = process.argv[3]
const profileDirectory = process.env['BENCH_PROFILE']

console.log(`HTTP ingest, ${eventBytes} B per event, durable before the response, ${rounds} interleaved rounds`)
console.log(pinned ? '  server on core 0, load on core 1 (taskset)' : '  cores not pinned: no taskset, or only one core')

await inScratch(async (scratch) => {
  const load = start(1, [process.execPath, join(import.meta.dirname, 'http-ingest-load.ts')])
  const servers = new Map<(typeof kinds)[number], { child: ChildProcess; url: string }>()
  for (const kind of kinds) {
    const directory = join(scratch, kind)
    await mkdir(directory)
    const profile = kind === 'inlet' && profileDirectory !== undefined ? ['--cpu-prof', '--cpu-prof-dir', profileDirectory] : []
    const child = start(0, [process.execPath, ...profile, join(import.meta.dirname, 'http-ingest-servers.ts'), kind, directory])
    const { ready: url } = (await next(child)) as ServerMessage & { ready: string }
    servers.set(kind, { child, url })
  }

  console.log('  events   floor req/s  inlet req/s  ratio    inlet events/s    MB/s   CPU/request floor, inlet')
  for (const { events, connections } of cases) {
    if (only !== undefined && Number(only) !== events) continue
    const results: Record<(typeof kinds)[number], Round[]> = { floor: [], inlet: [] }
    for (let round = 0; round < rounds; round += 1) {
      for (const [kind, { child, url }] of servers) {
        results[kind].push(await measure(load, child, { url, connections, events, eventBytes, warmUpMs, measureMs }))
      }
    }
    print(events, results)
  }

  for (const { child } of servers.values()) await stop(child)
  load.kill()
})

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

function print(events: number, { floor, inlet }: Record<(typeof kinds)[number], readonly Round[]>): void {
  const of = (results: readonly Round[], what: keyof Round) => median(results.map((result) => result[what]))
  const [floorRate, inletRate] = [of(floor, 'requestsPerSecond'), of(inlet, 'requestsPerSecond')]
  const [floorCpu, inletCpu] = [of(floor, 'cpuMicrosPerRequest'), of(inlet, 'cpuMicrosPerRequest')]
  const ratio = inletRate / floorRate
  console.log(
    [
      String(events).padStart(8),
      floorRate.toFixed(0).padStart(13),
      inletRate.toFixed(0).padStart(13),
      ratio.toFixed(2).padStart(7),
      (inletRate * events).toFixed(0).padStart(18),
      ((inletRate * events * eventBytes) / 1e6).toFixed(0).padStart(8),
      `${floorCpu.toFixed(0)} µs, ${inletCpu.toFixed(0)} µs (${(floorCpu / inletCpu).toFixed(2)})`.padStart(26),
      ratio >= goal ? '' : `  below the goal of ${goal}`,
    ].join(''),
  )
}
