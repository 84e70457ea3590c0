import { availableParallelism } from 'node:os'
import { must } from '#lib/assert.ts'
import { Installation } from '../test/support/installation.ts'
import { Customer, gatewayEnvironment } from '../test/support/object-gateway.ts'
import { startObjectGatewayWithUsers } from '../tools/services/gateway-users.ts'
import { generatedEvents } from './events.ts'
import { floor } from './extraction-floor.ts'
import { type Benchmark, cost, isWanted, rate, say } from './figures.ts'
import { inScratch } from './measure.ts'
import { MemoryPeaks } from './memory-peaks.ts'
import { cpuSeconds, Load } from './service-load.ts'

const pacedMegabytesPerSecond = 100
/** CPU time of all processes, from a request to its Parquet. */
const cpuSecondsMax = 15
/** Share of the cores, at the paced rate. */
const shareMax = 2 / 3
const processes = ['ingest', 'delivery', 'control'] as const
const node = { node: ['ingest', 'delivery', 'conversion worker'] }
/** MB. */
const nodeMemoryMax = 350

export const benchmark: Benchmark = {
  about: `The whole service on this machine: HTTP in, Parquet in the bucket; one endpoint, with raw Parquet and one view of ten columns, and the load generator on the same cores. First as fast as possible, until the last commit; then at ${pacedMegabytesPerSecond} MB/s. The floor is the conversion alone with bare DuckDB, spread over all cores: without HTTP, log, fsync and load generator. With \`BENCH_GATEWAY=1\` the bucket is on a Ceph gateway, which shares the cores too.`,
  async *measure(options) {
    const workload = generatedEvents(17.6e6)
    const floorBytes = generatedEvents(64e6)
    const bare = await inScratch((directory) => floor(floorBytes, directory))
    const floorSeconds = bare.load + bare.extract + bare.raw
    const floorSpeed = (floorBytes.lines.length / 1e6 / floorSeconds) * availableParallelism()

    await using stack = new AsyncDisposableStack()
    const gateway = process.env['BENCH_GATEWAY'] === '1' ? await startObjectGatewayWithUsers() : undefined
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
    const peaks = new MemoryPeaks(must(installation.pid('start'), 'a process'), node)
    stack.defer(() => peaks.stop())
    const load = new Load({ installation, endpointId: id, lines: workload.lines })
    stack.defer(() => load.close())

    const fast = 'as fast as possible'
    if (isWanted(fast, options)) {
      say(fast)
      const cpu = startCpu(installation)
      const { bytes, acknowledged, speed } = await load.send((options.isQuick ? 500 : 1_500) * 1e6, undefined)
      const used = cpu().map((seconds) => (seconds / bytes) * 1e9)
      yield rate({ work: `${fast}: acknowledged`, unit: 'MB/s', ours: acknowledged })
      yield rate({ work: `${fast}: committed`, unit: 'MB/s', ours: speed, floor: floorSpeed })
      yield cost({
        work: `${fast}: CPU of all processes`,
        unit: 's/GB',
        ours: sum(used),
        floor: (floorSeconds / floorBytes.lines.length) * 1e9,
        goal: { ours: cpuSecondsMax },
        parts: Object.fromEntries(processes.map((name, index) => [name, used[index] ?? Number.NaN])),
      })
    }
    const paced = `at ${pacedMegabytesPerSecond} MB/s`
    if (isWanted(paced, options)) {
      say(paced)
      const seconds = options.isQuick ? 5 : 15
      const cpu = startCpu(installation)
      const { acknowledged, behindSeconds } = await load.send(
        pacedMegabytesPerSecond * 1e6 * seconds,
        pacedMegabytesPerSecond * 1e6,
      )
      yield rate({
        work: `${paced}: acknowledged`,
        unit: 'MB/s',
        ours: acknowledged,
        goal: { ours: 0.97 * pacedMegabytesPerSecond },
      })
      yield cost({ work: `${paced}: last commit behind`, unit: 's', ours: behindSeconds, goal: { ours: 10 } })
      yield cost({
        work: `${paced}: cores in use, of ${availableParallelism()}`,
        unit: 'cores',
        ours: sum(cpu()) / seconds,
        floor: (pacedMegabytesPerSecond / floorSpeed) * availableParallelism(),
        goal: { ours: shareMax * availableParallelism() },
      })
    }
    for (const [name, { pss, rss }] of peaks.take()) {
      const goal = name === 'node' ? { goal: { ours: nodeMemoryMax } } : {}
      const work = name === 'node' ? `peak PSS of a node: ${node.node.join(', ')}` : `peak PSS of ${name}`
      yield cost({ work, unit: 'MB', ours: pss / 1e6, ...goal, parts: { rss: rss / 1e6 } })
    }
  },
}

/** Returns a function that returns the CPU seconds of each process since this call. */
function startCpu(installation: Installation): () => readonly number[] {
  const now = () => processes.map((name) => cpuSeconds(installation, name))
  const before = now()
  return () => now().map((seconds, index) => seconds - (before[index] ?? 0))
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
