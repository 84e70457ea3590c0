/**
 * Kills control and delivery at random moments of compactions, removals and a backfill, in a thorough run: the simulation does the same in each
 * run of CI. `INLET_TEST_SEED` repeats a run.
 * Law: whoever follows markers has every row exactly once, at any moment, and whoever remembers markers gets each row once over all runs. In the
 * end Inlet's own queries say the same, and no file that was merged is left.
 */

import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { seededRandom } from '#lib/random.ts'
import type { CompactionMarker } from '#model/compaction.ts'
import { Installation } from '../support/installation.ts'
import type { Marker } from '../support/markers.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { isThorough } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const child = resolve(import.meta.dirname, 'delivery-child.ts')
const seed = Number(process.env['INLET_TEST_SEED'] ?? randomInt(2 ** 31))
const kills = Number(process.env['COMPACTION_KILLS'] ?? 10)
const bucket = 'compaction-property'
const definition = { columns: [{ name: 'n', type: 'INTEGER', path: '$.n', required: true }] }

test.runIf(isThorough)(
  `compactions and removals lose and repeat no row (INLET_TEST_SEED=${seed})`,
  {
    timeout: 600_000,
  },
  async () => {
    const { fraction } = seededRandom(seed)
    const random = (below: number) => Math.floor(fraction() * below)
    await using inlet = await Installation.create({ environment: { INLET_LOG_LEVEL: 'error' } })
    await inlet.start('control', 'ingest', 'delivery')
    const { id } = await inlet.endpoint({
      ...{ bucket, view: { name: 'numbers', definition }, output_formats: ['parquet', 'parquet_views'] },
    })
    await inlet.ok('PATCH', `/v1/endpoints/${id}`, { compaction: { period: 'day', remove_after_hours: 1 } })
    const wide = await inlet.ok('POST', '/v1/views', { name: 'wide', definition })
    await inlet.ok('POST', `/v1/views/${wide.id}/publish`)

    const numbers: number[] = []
    const segment = async () => {
      const first = numbers.length
      numbers.push(first, first + 1)
      const { body } = await inlet.ingest(id, `{"n":${first}}\n{"n":${first + 1}}`)
      await inlet.committed(id, [body.segment_seq])
    }
    const readers = ['numbers', 'wide'].map((view) => new Reader(inlet, id, `views/${view}/v1`))
    const check = async () => {
      for (const reader of readers) await reader.check(numbers)
    }
    /** Control may be dead just then, or another compaction may run. */
    const tryTo = (path: string, body: object) => inlet.api('POST', path, body).catch(() => undefined)
    const compact = () => tryTo(`/v1/endpoints/${id}/compact`, { to: new Date(Date.now() + 60_000).toISOString() })
    const hourPasses = () => {
      using db = new DatabaseSync(join(inlet.directory, 'inlet.db'), { timeout: 20_000 })
      db.exec('UPDATE compactions SET published_at = published_at - 3600000')
    }

    for (let kill = 0; kill < kills; kill += 1) {
      for (let segments = 2 + random(2); segments > 0; segments -= 1) await segment()
      if (random(2) === 0) hourPasses()
      await inlet.end('delivery', 'SIGTERM')
      const started = compact()
      if (random(3) === 0) {
        await new Promise((done) => setTimeout(done, random(30)))
        await inlet.kill('control')
        await inlet.start('control')
      }
      await started
      if (random(3) === 0) await tryTo(`/v1/views/${wide.id}/backfill`, { endpoint_id: id })
      const when = random(2) === 0 ? 'before' : 'after'
      const dying = inlet.spawn('delivery', { instead: child, args: ['operation', String(1 + random(30)), when] })
      const died = once(dying, 'exit')
      // There may be fewer operations.
      const idle = until('the jobs', async () => (await unfinished(inlet, id)).length === 0, 60_000)
      await Promise.race([died, idle])
      idle.catch(() => undefined)
      await inlet.kill('delivery')
      await check()
      await inlet.start('delivery')
    }

    for (let rest = true; rest; ) {
      await until('the end of the jobs', async () => (await unfinished(inlet, id)).length === 0, 120_000)
      await check()
      hourPasses()
      rest = (await compact())?.status === 202
    }
    const backfill = await inlet.ok('POST', `/v1/views/${wide.id}/backfill`, { endpoint_id: id })
    await until('the backfill', async () => (await inlet.ok('GET', `/v1/jobs/${backfill.id}`)).finished_at !== null, 60_000)
    expect(await inlet.ok('GET', `/v1/jobs/${backfill.id}`)).toMatchObject({ segments: { failed: 0 } })
    for (const [index, view] of ['numbers', 'wide'].entries()) {
      expect(await readers[index]?.check(numbers)).toEqual(numbers)
      const { rows } = await inlet.ok('POST', '/v1/query', { sql: `SELECT n FROM ${view} ORDER BY n`, max_rows: 1_000 })
      expect(rows.flat()).toEqual(numbers)
    }
    const left = sources(inlet, id).filter((path) => existsSync(join(inlet.buckets, bucket, path)))
    expect(left).toEqual([])
    expect(sources(inlet, id).length).toBeGreaterThan(kills)
  },
)

async function unfinished(inlet: Installation, id: string): Promise<readonly unknown[]> {
  const { items } = await inlet.ok('GET', `/v1/jobs?endpoint_id=${id}&status=running`)
  return items
}

type FoundMarker = Marker & Partial<Pick<CompactionMarker, 'compacted'>>

function markersOf(inlet: Installation, id: string): readonly FoundMarker[] {
  return inlet.markers(bucket, id) as readonly FoundMarker[]
}

/** Returns the keys of the files that compactions merged. */
function sources(inlet: Installation, id: string): readonly string[] {
  const markers = markersOf(inlet, id)
  return markers.flatMap(({ compacted }) =>
    (compacted?.sources ?? []).map(
      (source) => markers.find((marker) => marker.id === source.id)?.artifacts[compacted?.kind ?? '']?.key ?? '',
    ),
  )
}

/** Reads the rows of one kind as docs/readers.md says: everything, and what is new since the last time. */
class Reader {
  readonly #inlet: Installation
  readonly #endpoint: string
  readonly #kind: string
  readonly #read = new Map<string, readonly number[]>()

  constructor(inlet: Installation, endpoint: string, kind: string) {
    this.#inlet = inlet
    this.#endpoint = endpoint
    this.#kind = kind
  }

  /** Returns the rows, which must be some of `numbers`, each once. */
  async check(numbers: readonly number[]): Promise<readonly number[]> {
    const markers = markersOf(this.#inlet, this.#endpoint)
    const everything: number[] = []
    for (const { id, artifacts = {} } of markers) {
      const file = artifacts[this.#kind]
      if (file === undefined) continue
      const rows = await this.#rows(markers, id, file)
      everything.push(...rows)
      // Rows that were read before are unchanged.
      expect(this.#read.get(id) ?? rows).toEqual(rows)
      this.#read.set(id, rows)
    }
    for (const rows of [everything, [...this.#read.values()].flat()]) {
      const sorted = rows.toSorted((a, b) => a - b)
      expect(sorted).toEqual(numbers.filter((n) => sorted.includes(n)))
      if (this.#kind.includes('numbers')) expect(sorted).toEqual(numbers)
    }
    return everything.toSorted((a, b) => a - b)
  }

  async #rows(
    markers: readonly FoundMarker[],
    id: string,
    file: { readonly key: string; readonly rows: number },
  ): Promise<readonly number[]> {
    const parts = markers.flatMap(({ compacted }) =>
      compacted?.kind === this.#kind
        ? compacted.sources
            .filter((source) => source.id === id)
            .map(({ first_row, rows }) => ({ key: compacted.key, first_row, rows }))
        : [],
    )
    expect(parts.length, 'a file is moved once').toBeLessThanOrEqual(1)
    const [{ key, first_row, rows }] = parts.length === 0 ? [{ ...file, first_row: 0 }] : (parts as [(typeof parts)[number]])
    const found = await readWithDuckDb([join(this.#inlet.buckets, bucket, key)])
    return found.slice(first_row, first_row + rows).map(({ n }) => Number(n))
  }
}
