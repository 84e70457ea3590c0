import { existsSync, readdirSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { must } from '#lib/assert.ts'
import { inParallel } from '#lib/in-parallel.ts'
import type { Installation } from '../test/support/installation.ts'
import { until } from '../test/support/until.ts'
import { type Benchmark, cost, type Figure, say } from './figures.ts'
import { createManyEndpoints, type Target, trickle } from './many-endpoints-installation.ts'
import { memoryOf } from './process-memory.ts'
import { cpuSecondsOf } from './service-load.ts'

const processes = ['control', 'ingest', 'delivery'] as const
type ByProcess = Readonly<Record<(typeof processes)[number], number>>

const clients = 32
/** Segments last as long as the benchmark, until ingest is stopped. */
const segmentMaxAgeSeconds = 3_600
/** List prices of S3 in us-east-1: dollars for a PUT, and for a HEAD or GET. */
const [putPrice, headPrice] = [0.005 / 1_000, 0.0004 / 1_000]
/** Raw Parquet, Parquet of the view and the marker. Before the marker is put, the two others are looked for. */
const [putsPerSegment, headsPerSegment] = [3, 2]

export const benchmark: Benchmark = {
  about:
    'A node with many endpoints that each get little: raw Parquet, one view, events one by one. An hour of it follows from three costs that are measured: an event, a segment, and an endpoint that has an open segment and gets nothing. The floor of memory is an installation with one endpoint. Requests to S3 at list prices of us-east-1.',
  async *measure(options) {
    const count = options.isQuick ? 1_000 : 10_000
    say('starting with one endpoint')
    const floor = await memoryWith(1)
    say(`starting with ${count} endpoints`)
    const { installation, endpoints } = await startWith(count)
    await using _ = installation
    yield* memoryFigures(`${count} endpoints`, memoryNow(installation), floor)

    say('opening a segment of each endpoint')
    const first = await cpuOf(installation, () => sendToAll(endpoints))
    const later = await cpuOf(installation, () => sendToAll(endpoints))
    yield perItem('an event that opens a segment', first, count)
    yield perItem('an event', later, count)
    yield* memoryFigures(`${count} open segments`, memoryNow(installation), floor)
    yield cost({ work: 'open files of ingest', unit: 'per endpoint', ours: openFiles(installation, 'ingest') / count })

    const idleSeconds = options.isQuick ? 10 : 25
    say(`waiting for ${idleSeconds} s`)
    const idle = await cpuOf(installation, () => setTimeout(idleSeconds * 1000))
    const hours = idleSeconds / 3_600
    yield perItem('an hour of an endpoint without data', idle, count * hours)

    say('sealing and delivering')
    await installation.end('ingest', 'SIGTERM')
    const before = countObjects(installation.buckets)
    const deliverySeconds = options.isQuick ? 15 : 30
    const delivering = await cpuOf(installation, () => setTimeout(deliverySeconds * 1000))
    const segments = (countObjects(installation.buckets) - before) / putsPerSegment
    yield perItem('a segment of two events, from its seal to its commit', delivering, segments)

    for (const age of [60, 3_600]) {
      const perHour = { events: 60 * count, segments: (3_600 / age) * count }
      const cpu =
        perHour.events * perSecond(later, count) +
        perHour.segments * (perSecond(delivering, segments) + perSecond(first, count) - perSecond(later, count)) +
        perSecond(idle, hours)
      const puts = perHour.segments * putsPerSegment
      const heads = perHour.segments * headsPerSegment
      const parts = { segments: perHour.segments, puts, heads, dollars: puts * putPrice + heads * headPrice }
      yield cost({
        work: `${count} endpoints, an event a minute each, age ${age} s, an hour`,
        unit: 'cores',
        ours: cpu / 3_600,
        parts,
      })
    }
  },
}

async function startWith(count: number) {
  const many = await createManyEndpoints(count, { segmentMaxAgeSeconds })
  await many.installation.start(...processes)
  const last = must(many.endpoints.at(-1), 'an endpoint')
  await until('the endpoints to be known', () => trickle(last), 60_000)
  // Delivery has no listener.
  await setTimeout(3_000)
  return many
}

async function memoryWith(count: number): Promise<ByProcess> {
  const { installation } = await startWith(count)
  await using _ = installation
  return memoryNow(installation)
}

function memoryNow(installation: Installation): ByProcess {
  return each((name) => memoryOf(pidOf(installation, name)).anonymous)
}

function* memoryFigures(work: string, ours: ByProcess, floor: ByProcess): Generator<Figure> {
  for (const name of processes)
    yield cost({ work: `anonymous memory of ${name}, ${work}`, unit: 'MB', ours: ours[name] / 1e6, floor: floor[name] / 1e6 })
}

/** Returns the CPU seconds of each process meanwhile, 0 of one that has ended before. */
async function cpuOf(installation: Installation, work: () => Promise<unknown>): Promise<ByProcess> {
  const now = () =>
    each((name) => (existsSync(`/proc/${pidOf(installation, name)}`) ? cpuSecondsOf(pidOf(installation, name)) : 0))
  const before = now()
  await work()
  const after = now()
  return each((name) => after[name] - before[name])
}

function perItem(work: string, cpu: ByProcess, items: number): Figure {
  const milliseconds = (seconds: number) => (seconds / items) * 1_000
  const parts = each((name) => milliseconds(cpu[name]))
  return cost({ work: `CPU of ${work}`, unit: 'ms', ours: milliseconds(sum(cpu)), parts })
}

function perSecond(cpu: ByProcess, items: number): number {
  return sum(cpu) / items
}

async function sendToAll(endpoints: readonly Target[]): Promise<void> {
  await inParallel(clients, endpoints, async (target) => {
    if (!(await trickle(target))) throw new Error('an event was not stored')
  })
}

function openFiles(installation: Installation, name: string): number {
  return readdirSync(`/proc/${pidOf(installation, name)}/fd`).length
}

/** Without those that are being written. */
function countObjects(buckets: string): number {
  const entries = readdirSync(buckets, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile() && !entry.parentPath.includes('/.')).length
}

function pidOf(installation: Installation, name: string): number {
  return must(installation.pid(name), `the process ${name}`)
}

function each(of: (name: (typeof processes)[number]) => number): ByProcess {
  return { control: of('control'), ingest: of('ingest'), delivery: of('delivery') }
}

function sum(cpu: ByProcess): number {
  return cpu.control + cpu.ingest + cpu.delivery
}
