/**
 * Many views on one endpoint: does delivery keep up with 20 MB/s, and what does one more view cost? `node bench/many-views.ts [seconds]`
 *
 *   paced     20 MB/s with 20 views, 64 MiB segments
 *   gigabyte  one segment of 1 GiB with 20 views, as fast as possible; only with `--gigabyte`, because it takes a minute or two
 *
 * Cores are shared with the load generator and other processes, so compare core seconds per GB.
 */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { GiB, MiB } from '#lib/bytes.ts'
import type { Definition } from '#model/definition.ts'
import { Installation } from '../test/support/installation.ts'
import { until } from '../test/support/until.ts'
import { generatedEvents, viewsOfEvents } from './events.ts'
import { cpuSeconds, Load, type Outcome, peakMegabytes, report } from './service-load.ts'

const megabytesPerSecond = 20
const seconds = Number(process.argv[2] ?? 20)
const { lines, records } = generatedEvents(17.6e6)
console.log(
  `whole service, ${availableParallelism()} cores, ${Math.round(lines.length / records)} B per event, views of 5 to 10 columns`,
)

type Run = { readonly outcome: Outcome; readonly coreSeconds: number }

async function run(
  views: readonly Definition[],
  megabytes: number,
  pace: number | undefined,
  segmentBytes: number,
): Promise<Run> {
  await using installation = await Installation.create({ environment: { INLET_LOG_LEVEL: 'error' } })
  await installation.start('start')
  const { id } = await installation.endpoint({
    bucket: 'bench',
    segment_max_age_seconds: segmentBytes === GiB ? 60 : 5,
    segment_bytes: segmentBytes,
    output_formats: ['parquet_views', 'parquet'],
  })
  for (const [index, definition] of views.entries()) await bind(installation, id, `view_${index}`, definition)
  const load = new Load({ installation, endpointId: id, lines })
  const before = cpuSeconds(installation, 'delivery')
  const outcome = await load.send(megabytes * 1e6, pace === undefined ? undefined : pace * 1e6)
  const coreSeconds = cpuSeconds(installation, 'delivery') - before
  load.close()
  report(`${String(views.length).padStart(2)} views`, outcome)
  console.log(
    `            delivery: ${((coreSeconds / megabytes) * 1000).toFixed(1)} core seconds a GB, peak ${peakMegabytes(installation, 'delivery')} MB`,
  )
  return { outcome, coreSeconds }
}

async function bind(installation: Installation, endpointId: string, name: string, definition: Definition): Promise<void> {
  const { id } = await installation.ok('POST', '/v1/views', { name, definition })
  await installation.ok('POST', `/v1/views/${id}/publish`)
  await installation.ok('POST', `/v1/endpoints/${endpointId}/views`, { view_id: id })
  const snapshot = join(installation.directory, 'node', 'delivery-snapshot.ndjson')
  await until(`delivery to apply the view ${name}`, () => readFileSync(snapshot, 'utf8').includes(id), 30_000)
}

if (process.argv.includes('--gigabyte')) {
  await run(viewsOfEvents(20), 1_090, undefined, GiB)
} else {
  const megabytes = megabytesPerSecond * seconds
  const one = await run(viewsOfEvents(1), megabytes, megabytesPerSecond, 64 * MiB)
  const two = await run(viewsOfEvents(2), megabytes, megabytesPerSecond, 64 * MiB)
  const twenty = await run(viewsOfEvents(20), megabytes, megabytesPerSecond, 64 * MiB)
  const ratio = ({ coreSeconds }: Run) => (coreSeconds / one.coreSeconds).toFixed(2)
  console.log(`  two views ${ratio(two)} times one (goal: at most 1.6), twenty ${ratio(twenty)} times`)
  const { behindSeconds, acknowledged } = twenty.outcome
  const keptUp = behindSeconds < 10 && acknowledged > megabytesPerSecond * 0.97
  console.log(`  goal: 20 views at ${megabytesPerSecond} MB/s without falling behind: ${keptUp ? 'reached' : 'missed'}`)
}
