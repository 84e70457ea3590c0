import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MiB } from '#lib/bytes.ts'
import type { Definition } from '#model/definition.ts'
import { Installation } from '../test/support/installation.ts'
import { until } from '../test/support/until.ts'
import { generatedEvents, viewsOfEvents } from './events.ts'
import { type Benchmark, cost, isWanted, rate, say } from './figures.ts'
import { cpuSeconds, Load, type Outcome, peakMegabytes } from './service-load.ts'

const megabytesPerSecond = 20
/** The largest segment. */
const segmentBytesMax = 1e9
/** Megabytes that fill it, with a little left for the next one. */
const segmentMegabytes = 1_020

type Run = { readonly outcome: Outcome; readonly coreSecondsPerGB: number; readonly peakMegabytes: number }

export const benchmark: Benchmark = {
  about: `Many views of 5 to 10 columns on one endpoint, in the whole service, with the load generator on the same cores: does delivery keep up with ${megabytesPerSecond} MB/s and segments of 64 MiB, and what does one more view cost? Then one segment of 1 GB as fast as possible. CPU seconds are those of delivery and its workers.`,
  async *measure(options) {
    const megabytes = megabytesPerSecond * (options.isQuick ? 6 : 20)
    const paced = `at ${megabytesPerSecond} MB/s`
    if (isWanted(paced, options)) {
      const runs = new Map<number, Run>()
      for (const count of [1, 2, 20]) runs.set(count, await run(viewsOfEvents(count), megabytes, megabytesPerSecond, 64 * MiB))
      const one = runs.get(1)?.coreSecondsPerGB ?? Number.NaN
      for (const [count, { coreSecondsPerGB: ours, peakMegabytes, outcome }] of runs) {
        const work = `${count} ${count === 1 ? 'view' : 'views'} ${paced}`
        yield cost({
          work: count === 1 ? `${work}: CPU of delivery` : `${work}: CPU of delivery, beside one view`,
          unit: 's/GB',
          ours,
          ...(count === 1 ? {} : { floor: one }),
          ...(count === 2 ? { goal: { ratio: 1 / 1.6 } } : {}),
        })
        yield cost({ work: `${work}: peak memory of delivery`, unit: 'MB', ours: peakMegabytes })
        if (count < 20) continue
        yield rate({
          work: `${work}: acknowledged`,
          unit: 'MB/s',
          ours: outcome.acknowledged,
          goal: { ours: 0.97 * megabytesPerSecond },
        })
        yield cost({ work: `${work}: last commit behind`, unit: 's', ours: outcome.behindSeconds, goal: { ours: 10 } })
      }
    }
    const segment = 'a segment of 1 GB, 20 views'
    if (options.isQuick || !isWanted(segment, options)) return
    const { outcome, coreSecondsPerGB, peakMegabytes } = await run(
      viewsOfEvents(20),
      segmentMegabytes,
      undefined,
      segmentBytesMax,
    )
    yield cost({ work: `${segment}: last commit behind`, unit: 's', ours: outcome.behindSeconds })
    yield cost({ work: `${segment}: CPU of delivery`, unit: 's/GB', ours: coreSecondsPerGB })
    yield cost({ work: `${segment}: peak memory of delivery`, unit: 'MB', ours: peakMegabytes })
  },
}

async function run(
  views: readonly Definition[],
  megabytes: number,
  pace: number | undefined,
  segmentBytes: number,
): Promise<Run> {
  say(`${views.length} views, ${megabytes} MB`)
  await using installation = await Installation.create({ environment: { INLET_LOG_LEVEL: 'error' } })
  await installation.start('start')
  const { id } = await installation.endpoint({
    bucket: 'bench',
    segment_max_age_seconds: segmentBytes === segmentBytesMax ? 60 : 5,
    segment_bytes: segmentBytes,
    output_formats: ['parquet_views', 'parquet'],
  })
  for (const [index, definition] of views.entries()) await bind(installation, id, `view_${index}`, definition)
  const load = new Load({ installation, endpointId: id, lines: generatedEvents(17.6e6).lines })
  const before = cpuSeconds(installation, 'delivery')
  const outcome = await load.send(megabytes * 1e6, pace === undefined ? undefined : pace * 1e6)
  const coreSecondsPerGB = ((cpuSeconds(installation, 'delivery') - before) / outcome.bytes) * 1e9
  load.close()
  return { outcome, coreSecondsPerGB, peakMegabytes: peakMegabytes(installation, 'delivery') }
}

async function bind(installation: Installation, endpointId: string, name: string, definition: Definition): Promise<void> {
  const { id } = await installation.ok('POST', '/v1/views', { name, definition })
  await installation.ok('POST', `/v1/views/${id}/publish`)
  await installation.ok('POST', `/v1/endpoints/${endpointId}/views`, { view_id: id })
  const snapshot = join(installation.directory, 'node', 'delivery-snapshot.ndjson')
  await until(`delivery to apply the view ${name}`, () => readFileSync(snapshot, 'utf8').includes(id), 30_000)
}
