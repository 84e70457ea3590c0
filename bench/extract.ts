/** View extraction on one core, compared with bare DuckDB on the same records in the same run. `node bench/extract.ts [MiB] [rounds]` */
import type { Buffer } from 'node:buffer'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { loadSegment } from '#delivery/convert/build.ts'
import { GiB, MiB } from '#lib/bytes.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import { RecordTable } from '#records/record-table.ts'
import { compileView } from '#views/compile.ts'
import type { NamedView } from '#views/compiled-view.ts'
import type { Frame } from '#wal/frame.ts'
import { generatedEvents, githubEvents, otherView, type Workload } from './events.ts'
import { type Floor, floor } from './extraction-floor.ts'
import { best, coreSeconds, inScratch, line } from './measure.ts'

const FRAME_BYTES = 256 * 1024
const FRAMES_IN_GROUP = 16
const fields = {
  layout: 'lines',
  receivedAtMicros: 1.7e15,
  recordCount: 0,
  envelope: encodeEnvelope({ protocol: 'http' }),
} as const

type Times = { readonly load: number; readonly raw: number; readonly one: number; readonly two: number }

/** Yields the lines in frames, as clients with batches send them, in groups, as a segment reader yields them. */
export function* framesOf(lines: Buffer): Generator<readonly Frame[]> {
  let group: Frame[] = []
  for (let start = 0; start < lines.length; ) {
    const feed = lines.indexOf(10, Math.min(start + FRAME_BYTES, lines.length - 1))
    const end = feed === -1 ? lines.length : feed + 1
    group.push({ ...fields, payload: lines.subarray(start, end) })
    start = end
    if (group.length < FRAMES_IN_GROUP) continue
    yield group
    group = []
  }
  yield group
}

export async function inlet({ lines, definition }: Workload, directory: string): Promise<Times> {
  const views: NamedView[] = [
    { name: 'one', version: 1, compiled: await compileView(definition) },
    { name: 'two', version: 1, compiled: await compileView(otherView(definition)) },
  ]
  await mkdir(directory)
  const table = await RecordTable.open({
    directory,
    memoryBytes: 256 * MiB,
    segmentSeq: 1,
    signal: new AbortController().signal,
    spillBytesMax: 16 * GiB,
    viewTimeoutMs: 600_000,
  })
  const load = await coreSeconds(() => loadSegment(table, framesOf(lines)))
  const raw = await coreSeconds(() => table.writeRaw(join(directory, 'raw.parquet')))
  const made = (count: number) =>
    coreSeconds(async () => {
      const extracted = await table.extract(views.slice(0, count))
      for (let view = 0; view < count; view += 1) {
        await table.writeAccepted(extracted, view, join(directory, `view-${view}.parquet`))
      }
    })
  const one = await made(1)
  const two = await made(2)
  table.close()
  return { load, raw, one, two }
}

/** Runs rounds of both in turn and returns the best of each. */
export async function compare(workload: Workload, rounds: number): Promise<{ readonly bare: Floor; readonly ours: Times }> {
  const bares: Floor[] = []
  const all: Times[] = []
  for (let round = 0; round < rounds; round += 1) {
    bares.push(await inScratch((directory) => floor(workload, directory)))
    all.push(await inScratch((directory) => inlet(workload, join(directory, 'inlet'))))
  }
  const of = <T extends Record<string, number>>(times: readonly T[], key: keyof T) =>
    best(times.map((each) => each[key] ?? Number.NaN))
  return {
    bare: { load: of(bares, 'load'), extract: of(bares, 'extract'), raw: of(bares, 'raw') },
    ours: { load: of(all, 'load'), raw: of(all, 'raw'), one: of(all, 'one'), two: of(all, 'two') },
  }
}

export function workloads(): readonly Workload[] {
  const bytes = Number(process.argv[2] ?? 64) * MiB
  return [generatedEvents(bytes), githubEvents(bytes)].filter((workload) => workload !== undefined)
}

if (import.meta.main) {
  for (const workload of workloads()) {
    const { name, lines, records } = workload
    console.log(
      `${name}: ${(lines.length / 1e6).toFixed(0)} MB, ${records} records of ${(lines.length / records).toFixed(0)} bytes, 10 columns`,
    )
    const { bare, ours } = await compare(workload, Number(process.argv[3] ?? 3))
    const show = (what: string, took: number, comparison = '') => line(what, lines.length, records, took, comparison)
    show('floor: bare DuckDB, loaded table to typed Parquet', bare.extract)
    show('one view, loaded table to typed Parquet', ours.one, `${(bare.extract / ours.one).toFixed(2)} of the floor (goal 0.8)`)
    show('two views, loaded table to typed Parquet', ours.two, `${(ours.two / ours.one).toFixed(2)} times one view`)
    show('floor: bare DuckDB, appender and typed Parquet', bare.load + bare.extract)
    show(
      'frames to one view',
      ours.load + ours.one,
      `${((bare.load + bare.extract) / (ours.load + ours.one)).toFixed(2)} of the floor`,
    )
    const times = (ours.load + ours.two) / (ours.load + ours.one)
    show('frames to two views', ours.load + ours.two, `${times.toFixed(2)} times one view (goal at most 1.6)`)
    show('of which loading', ours.load)
  }
}
