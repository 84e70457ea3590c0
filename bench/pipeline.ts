/**
 * The whole service on this machine: HTTP in, Parquet in the bucket; one endpoint, with raw Parquet and one view of ten columns.
 *
 *   blast   as fast as possible; measured until the last commit
 *   paced   at 100 MB/s, the goal: does delivery keep up?
 *
 * The floor is the conversion alone with bare DuckDB, spread over all cores: without HTTP, log, fsync and load generator, which
 * share the cores here. `node bench/pipeline.ts [megabytes] [seconds paced] [gateway]`: with `gateway` the bucket
 * is on a Ceph gateway, which shares the cores too (CONTRIBUTING.md lists its packages).
 */

import { availableParallelism } from 'node:os'
import { Installation } from '../test/support/installation.ts'
import { Customer, gatewayEnvironment } from '../test/support/object-gateway.ts'
import { startObjectGatewayWithUsers } from '../tools/services/gateway-users.ts'
import { generatedEvents } from './events.ts'
import { floor } from './extraction-floor.ts'
import { inScratch } from './measure.ts'
import { Load, peakMegabytes, report } from './service-load.ts'

const megabytes = Number(process.argv[2] ?? 1500)
const pacedMegabytesPerSecond = 100
const pacedSeconds = Number(process.argv[3] ?? 15)

const workload = generatedEvents(17.6e6)
console.log(`whole service, ${availableParallelism()} cores, ${Math.round(workload.lines.length / workload.records)} B per event`)

const floorBytes = generatedEvents(64e6)
const bare = await inScratch((directory) => floor(floorBytes, directory))
const floorSpeed = (floorBytes.lines.length / 1e6 / (bare.load + bare.extract + bare.raw)) * availableParallelism()
console.log(`  floor: bare DuckDB, loading and both files, all cores  ${floorSpeed.toFixed(0)} MB/s`)

await using stack = new AsyncDisposableStack()
const gateway = process.argv[4] === 'gateway' ? await startObjectGatewayWithUsers() : undefined
if (gateway !== undefined) stack.defer(gateway.stop)
const store = gateway === undefined ? {} : gatewayEnvironment(gateway.described)
const installation = stack.use(await Installation.create({ environment: { INLET_LOG_LEVEL: 'error', ...store } }))
await installation.start('start')
const destination = gateway === undefined ? undefined : await new Customer(gateway.described).destination(installation)
const { id } = await installation.endpoint({
  bucket: 'bench',
  ...(destination === undefined ? {} : { bucket: destination.bucket, destination_id: destination.id }),
  view: { name: 'bench', definition: workload.definition },
  segment_max_age_seconds: 5,
  segment_bytes: 64 * 1024 * 1024,
  output_formats: ['parquet_views', 'parquet'],
})
const load = new Load({ installation, endpointId: id, lines: workload.lines })

const blast = await load.send(megabytes * 1e6, undefined)
report('blast', blast)
console.log(`         ratio to the floor ${(blast.speed / floorSpeed).toFixed(2)}`)
const paced = await load.send(pacedMegabytesPerSecond * 1e6 * pacedSeconds, pacedMegabytesPerSecond * 1e6)
report('paced', paced)
console.log(
  `         goal: ${pacedMegabytesPerSecond} MB/s sustained: ${paced.behindSeconds < 10 && paced.acknowledged > pacedMegabytesPerSecond * 0.97 ? 'reached' : 'missed'}`,
)
for (const name of ['ingest', 'delivery', 'control'])
  console.log(`  peak memory of ${name.padEnd(9)} ${peakMegabytes(installation, name)} MB`)
load.close()
