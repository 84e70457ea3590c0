import type { Buffer } from 'node:buffer'
import { closeSync, openSync, readSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadSegment } from '#delivery/convert/build/build.ts'
import { GiB, MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { forEachRecord } from '#log/records.ts'
import type { Definition } from '#model/definition.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { Reread } from '#records/record-runs.ts'
import { RecordTable } from '#records/record-table.ts'
import { compileView } from '#views/compile.ts'
import type { NamedView } from '#views/compiled-view.ts'
import type { Frame } from '../src/log/frame.ts'
import { EngineRuns } from './counterparts.ts'
import {
  generatedEvents,
  generatedOrders,
  githubEvents,
  ITEMS,
  otherView,
  type Workload,
  withComputedColumns,
  withLayout,
  withoutDuplicates,
} from './events.ts'
import { type Floor, floor } from './extraction-floor.ts'
import { type Benchmark, cost, isWanted, say } from './figures.ts'
import { best, coreSeconds, inScratch } from './measure.ts'

const FRAME_BYTES = 256 * 1024
const FRAMES_IN_GROUP = 16
const fields = {
  layout: 'lines',
  receivedAtMicros: 1.7e15,
  recordCount: 0,
  envelope: encodeEnvelope({ protocol: 'http' }),
} as const

type Expectation = { readonly goal?: number; readonly isSteady?: boolean }
type Times = {
  readonly load: number
  readonly loadMessages: number
  readonly raw: number
  readonly one: number
  readonly two: number
  /** The first view with five computed columns more. */
  readonly computed: number
  /** The first view in partitions that are ordered, and with one row for each id. */
  readonly layout: number
  readonly deduped: number
}

/** Yields the lines in frames, as clients with batches send them, in groups, as a segment reader yields them. */
function* framesOf(lines: Buffer): Generator<readonly Frame[]> {
  let group: Frame[] = []
  for (let start = 0; start < lines.length; ) {
    const feed = lines.indexOf(10, Math.min(start + FRAME_BYTES, lines.length - 1))
    const end = feed === -1 ? lines.length : feed + 1
    group.push({ ...fields, payload: lines.subarray(start, end), at: start })
    start = end
    if (group.length < FRAMES_IN_GROUP) continue
    yield group
    group = []
  }
  yield group
}

/** Yields each line in a frame of its own, as from MQTT. */
function* messagesOf(lines: Buffer): Generator<readonly Frame[]> {
  const envelope = encodeEnvelope({ protocol: 'mqtt', topic: 'bench/events', client_id: 'bench' })
  for (const group of framesOf(lines)) {
    for (const { payload } of group) {
      const frames: Frame[] = []
      forEachRecord({ layout: 'lines', payload }, (start, end) => {
        frames.push({ ...fields, layout: 'single', envelope, recordCount: 1, payload: payload.subarray(start, end) })
      })
      yield frames
    }
  }
}

async function openTable(directory: string, reread?: Reread): Promise<RecordTable> {
  await mkdir(directory)
  return RecordTable.open({
    clock: systemClock,
    directory,
    memoryBytes: 256 * MiB,
    segmentSeq: 1,
    signal: new AbortController().signal,
    spillBytesMax: 16 * GiB,
    viewTimeoutMs: 600_000,
    reread,
  })
}

async function inlet({ lines, definition }: Workload, directory: string): Promise<Times> {
  const compiled = async (name: string, of: Definition) => ({ name, version: 1, compiled: await compileView(of), secrets: {} })
  const views: NamedView[] = [await compiled('one', definition), await compiled('two', otherView(definition))]
  const withComputed = await compiled('computed', withComputedColumns(definition))
  const laidOut = await compiled('layout', withLayout(definition))
  const withIds = await compiled('deduped', withoutDuplicates(definition))
  // The segment, which is there already.
  const segment = `${directory}.lines`
  await writeFile(segment, lines)
  const file = openSync(segment, 'r')
  const table = await openTable(directory, (into, at) => readSync(file, into, 0, into.byteLength, at))
  const load = await coreSeconds(() => loadSegment(table, framesOf(lines)))
  const messages = [...messagesOf(lines)]
  const fromMessages = await openTable(join(directory, 'messages'))
  const loadMessages = await coreSeconds(() => loadSegment(fromMessages, messages))
  fromMessages.close()
  const raw = await coreSeconds(() => table.writeRaw(join(directory, 'raw.parquet')))
  const made = (views: readonly NamedView[]) =>
    coreSeconds(async () => {
      const extracted = await table.extract(views)
      for (const view of views.keys()) await table.writeAccepted(extracted, view, join(directory, `view-${view}.parquet`))
    })
  const one = await made(views.slice(0, 1))
  const two = await made(views)
  const computed = await made([withComputed])
  const layout = await made([laidOut])
  const deduped = await made([withIds])
  table.close()
  closeSync(file)
  return { load, loadMessages, raw, one, two, computed, layout, deduped }
}

/** Returns the time from frames to the Parquet of one view. */
async function toOneView({ lines, definition }: Workload, directory: string): Promise<number> {
  const view = { name: 'orders', version: 1, compiled: await compileView(definition), secrets: {} }
  const table = await openTable(directory)
  const took = await coreSeconds(async () => {
    await loadSegment(table, framesOf(lines))
    await table.writeAccepted(await table.extract([view]), 0, join(directory, 'view.parquet'))
  })
  table.close()
  return took
}

/** Compares a view that makes a row of each item with the same view on a record for each item. */
async function compareExpanded(bytes: number, rounds: number) {
  const { orders, items } = generatedOrders(bytes)
  say(`${orders.name}: ${orders.records} records of ${(orders.lines.length / orders.records).toFixed(0)} bytes`)
  const [expanded, plain]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round += 1) {
    expanded.push(await inScratch((directory) => toOneView(orders, join(directory, 'orders'))))
    plain.push(await inScratch((directory) => toOneView(items, join(directory, 'items'))))
  }
  const perRow = 1e6 / (orders.records * ITEMS)
  return cost({
    work: `${orders.name}: one view with expand, beside it on a record for each item`,
    unit: 'µs/row',
    ours: best(expanded) * perRow,
    floor: best(plain) * perRow,
    goal: { ratio: 1 },
  })
}

/** Runs rounds of both in turn and returns the best of each. */
async function compare(
  workload: Workload,
  rounds: number,
): Promise<{ readonly bare: Floor; readonly ours: Times; readonly engines: EngineRuns }> {
  const engines = new EngineRuns()
  const bares: Floor[] = []
  const all: Times[] = []
  for (let round = 0; round < rounds; round += 1) {
    bares.push(await inScratch((directory) => floor(workload, directory)))
    all.push(await inScratch((directory) => inlet(workload, join(directory, 'inlet'))))
    await inScratch(async (directory) => {
      const file = join(directory, 'lines.ndjson')
      await writeFile(file, workload.lines)
      engines.measure(file, directory, workload.definition.columns, workload.records)
    })
  }
  const of = <T extends Record<string, number>>(times: readonly T[], key: keyof T) =>
    best(times.map((each) => each[key] ?? Number.NaN))
  return {
    engines,
    bare: {
      load: of(bares, 'load'),
      extract: of(bares, 'extract'),
      raw: of(bares, 'raw'),
      readJson: of(bares, 'readJson'),
      readJsonOther: of(bares, 'readJsonOther'),
    },
    ours: {
      load: of(all, 'load'),
      loadMessages: of(all, 'loadMessages'),
      raw: of(all, 'raw'),
      one: of(all, 'one'),
      two: of(all, 'two'),
      computed: of(all, 'computed'),
      layout: of(all, 'layout'),
      deduped: of(all, 'deduped'),
    },
  }
}

export const benchmark: Benchmark = {
  about:
    'Frames of the log to Parquet, on one core, in CPU seconds a GB of records, with ten columns. The floor is bare DuckDB at the same records: read_json on a plain file with the types of the view, once for each view, or its appender for raw Parquet, and COPY to Parquet with zstd.',
  async *measure(options) {
    const bytes = (options.isQuick ? 32 : 64) * MiB
    for (const workload of [generatedEvents(bytes), githubEvents(bytes)]) {
      if (workload === undefined || !isWanted(workload.name, options)) continue
      const { name, lines, records } = workload
      say(`${name}: ${records} records of ${(lines.length / records).toFixed(0)} bytes`)
      const { bare, ours, engines } = await compare(workload, options.rounds ?? 3)
      const figure = (work: string, took: number, floor: number, { goal, isSteady = false }: Expectation = {}) =>
        cost({
          work: `${name}: ${work}`,
          unit: 's/GB',
          ours: (took / lines.length) * 1e9,
          floor: (floor / lines.length) * 1e9,
          ...(goal === undefined ? {} : { goal: { ratio: goal } }),
          // The few records of GitHub are measured too briefly.
          isSteady: isSteady && name === 'generated events',
        })
      yield {
        ...figure('frames to one view', ours.load + ours.one, bare.readJson, { goal: 1 / 1.15, isSteady: true }),
        peers: engines.peers(lines.length),
      }
      yield figure('messages of MQTT to one view', ours.loadMessages + ours.one, bare.readJson, { isSteady: true })
      yield figure('frames to raw Parquet', ours.load + ours.raw, bare.load + bare.raw, { isSteady: true })
      yield figure('one view with five computed columns, beside it without', ours.load + ours.computed, ours.load + ours.one, {
        goal: 1 / 1.25,
        isSteady: true,
      })
      const beside = ours.load + ours.one
      yield figure('one view with partition_by and sort_by, beside it without', ours.load + ours.layout, beside)
      yield figure('one view with dedupe_by, beside it without', ours.load + ours.deduped, beside)
      yield figure('frames to two views', ours.load + ours.two, bare.readJson + bare.readJsonOther, { goal: 1 / 1.15 })
    }
    if (isWanted('orders of ten items', options)) yield await compareExpanded(bytes, options.rounds ?? 3)
  },
}
