import { Installation } from '../test/support/installation.ts'
import { until } from '../test/support/until.ts'
import { CommitLoad, type CommitTimes } from './commit-load.ts'
import { type Benchmark, cost, type Figure, isWanted, rate, say } from './figures.ts'
import { median } from './measure.ts'
import { percentiles } from './open-loop.ts'
import { cpuSeconds } from './service-load.ts'

type Level = {
  readonly endpoints: number
  /** How often each of them gets an event. */
  readonly everySeconds: number
}

const levels: readonly Level[] = [
  { endpoints: 1, everySeconds: 1 },
  { endpoints: 100, everySeconds: 1 },
  { endpoints: 1_000, everySeconds: 10 },
]
/** Endpoints with an event a second, to find how many reach the goal. */
const steps = [25, 50, 75, 100, 125, 150, 200, 300]
const goalSeconds = 1.5
const parallel = 4
/** How long the last commits may take. */
const settleMs = 15_000
const bucket = 'bench'
const definition = {
  columns: [
    { name: 'id', type: 'UUID', path: '$.id' },
    { name: 'type', type: 'VARCHAR', path: '$.type' },
    { name: 'at', type: 'TIMESTAMP', path: '$.at' },
    { name: 'value', type: 'DOUBLE', path: '$.value' },
    { name: 'text', type: 'VARCHAR', path: '$.text' },
  ],
}

export const benchmark: Benchmark = {
  about: `From an acknowledgement to the readable commit: its marker and its Parquet file are in the bucket (the file has the checksum of the marker), and the API lists it. Endpoints seal after a second and have one typed view; each gets one event at a time; a second one often joins the segment of the first. The whole service and the load generator share the cores. A segment waits for up to a second, so the floor is 1 s. A commit that was not there at the end counts with the time it was waited for.`,
  async *measure(options) {
    const seconds = options.isQuick ? 6 : 12
    const possible = options.isQuick ? levels.slice(0, 2) : levels
    for (const level of possible.filter((each) => isWanted(workOf(each), options)))
      yield* figuresOf(level, await run(level, seconds))
    const work = `segments whose median is below ${goalSeconds} s`
    if (options.isQuick || !isWanted(work, options)) return
    let reached = 0
    for (const endpoints of steps) {
      const measured = await run({ endpoints, everySeconds: 1 }, seconds)
      if (medianSeconds(measured) > goalSeconds) break
      reached = measured.segments / seconds
    }
    yield rate({ work, unit: 'segments/s', ours: reached })
  },
}

type Run = {
  readonly times: readonly CommitTimes[]
  readonly segments: number
  readonly cpuMs: Readonly<Record<string, number>>
}

function workOf({ endpoints, everySeconds }: Level): string {
  const active = `${endpoints.toLocaleString('en').replace(',', ' ')} active ${endpoints === 1 ? 'endpoint' : 'endpoints'}`
  return everySeconds === 1 ? active : `${active}, an event every ${everySeconds} s`
}

function medianSeconds({ times }: Run): number {
  return median(times.map(({ readable }) => readable)) / 1000
}

function* figuresOf(level: Level, { times, cpuMs }: Run): Generator<Figure> {
  const all = (part: keyof CommitTimes) => percentiles(times.map((each) => each[part]))
  const { p50, p99 } = all('readable')
  const parts = { 'to the seal': all('sealed').p50 / 1000, 'to the marker': all('marker').p50 / 1000, p99: p99 / 1000 }
  yield cost({ work: workOf(level), unit: 's', ours: p50 / 1000, floor: 1, goal: { ours: goalSeconds }, parts })
  const total = Object.values(cpuMs).reduce((sum, ms) => sum + ms, 0)
  yield cost({ work: `${workOf(level)}: CPU a segment`, unit: 'ms', ours: total, parts: cpuMs })
}

async function run(level: Level, seconds: number): Promise<Run> {
  say(workOf(level))
  await using installation = await Installation.create({ environment: { INLET_LOG_LEVEL: 'error' } })
  await installation.start('start')
  const endpointIds = await createEndpoints(installation, level.endpoints)
  const load = new CommitLoad({ installation, bucket, endpointIds, everyMs: level.everySeconds * 1000 })
  // Starts conversion processes, and compiles what is on the way.
  await load.send(4_000, { rampMs: 3_000 })
  await load.settle(settleMs)
  const processes = ['ingest', 'delivery', 'control']
  const cpu = () => processes.map((name) => cpuSeconds(installation, name))
  const [before, segments] = [cpu(), load.segments]
  await load.send(seconds * 1000)
  const times = await load.settle(settleMs)
  const [after, made] = [cpu(), load.segments - segments]
  load.close()
  const cpuMs = processes.map((name, at) => [name, (((after[at] ?? 0) - (before[at] ?? 0)) * 1000) / made])
  return { times, segments: made, cpuMs: Object.fromEntries(cpuMs) }
}

async function createEndpoints(installation: Installation, count: number): Promise<readonly string[]> {
  const { id: destination_id } = await installation.ok('POST', '/v1/destinations', {
    ...{ name: bucket, bucket, region: 'local', prefix: '' },
    role_arn: 'arn:aws:iam::000000000000:role/inlet-bench',
  })
  await installation.ok('POST', `/v1/destinations/${destination_id}/validate`)
  const { id: view_id } = await installation.ok('POST', '/v1/views', { name: 'bench', definition })
  await installation.ok('POST', `/v1/views/${view_id}/publish`)
  // The account may have 1 000 endpoints, and a first start makes one.
  for (const { id } of (await installation.ok('GET', '/v1/endpoints')).items)
    await installation.ok('DELETE', `/v1/endpoints/${id}`)
  const ids: string[] = []
  const create = async () => {
    while (ids.length < count) {
      const at = ids.push('') - 1
      const settings = { region: 'loc', destination_id, segment_max_age_seconds: 1, output_formats: ['parquet_views'] }
      const { id } = await installation.ok('POST', '/v1/endpoints', settings)
      await installation.ok('POST', `/v1/endpoints/${id}/views`, { view_id })
      ids[at] = id
    }
  }
  await Promise.all(Array.from({ length: parallel }, create))
  // A configuration that has the last ones has all. Events for each of the others would be as many segments to deliver before the load.
  for (const id of ids.slice(-parallel)) {
    await installation.untilConfigured(id, view_id)
    await until('the endpoint to accept events', async () => (await installation.ingest(id, '{"warm":1}\n')).status === 202)
  }
  return ids
}
