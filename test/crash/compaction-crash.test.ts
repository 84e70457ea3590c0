/**
 * A real delivery process dies at a named moment of a compaction, and the next one continues. Meanwhile a reader follows the markers.
 * Law: whoever reads what markers of commits say exists, where markers of compactions say it is, always reads every row once, in order.
 */
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { CompactionMarker } from '#model/compaction.ts'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { isThorough } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const child = resolve(import.meta.dirname, 'delivery-child.ts')
const definition = { columns: [{ name: 'n', type: 'INTEGER', path: '$.n', required: true }] }
const kind = 'views/numbers/v1'

const moments: readonly (readonly [moment: string, isQuick?: true])[] = [
  ['compaction: downloaded'],
  ['compaction: before the file'],
  ['compaction: before the marker'],
  ['compaction: marker, before the report', true],
]

describe('the delivery process dies', () => {
  let installation: Installation
  beforeAll(async () => {
    installation = await Installation.create()
    await installation.start('control', 'ingest')
  })
  afterEach(() => installation.end('delivery', 'SIGTERM'))
  afterAll(() => installation?.[Symbol.asyncDispose]())

  test.each(moments.filter(([, isQuick]) => isQuick || isThorough).map(([moment], index) => ({ moment, index })))(
    '$moment',
    async ({ moment, index }) => {
      const bucket = `compaction-${index}`
      installation.spawn('delivery')
      const { id } = await installation.endpoint({
        bucket,
        ...(index === 0 ? { view: { name: 'numbers', definition } } : {}),
        output_formats: ['parquet', 'parquet_views'],
      })
      const view = (await installation.ok('GET', '/v1/views')).items[0]
      if (index > 0) {
        await installation.ok('POST', `/v1/endpoints/${id}/views`, { view_id: view.id })
        await installation.untilConfigured(id, view.id)
      }
      const send = async (n: number) => {
        const { body } = await installation.ingest(id, `{"n":${n}}\n{"n":${n + 1}}`)
        await installation.committed(id, [body.segment_seq])
      }
      for (const n of [0, 2, 4]) await send(n)
      await installation.end('delivery', 'SIGTERM')
      const read = () => readByMarkers(installation, bucket, id)
      const progress = async (job: { id: string }) => installation.ok('GET', `/v1/jobs/${job.id}`)
      const start = () =>
        installation.ok('POST', `/v1/endpoints/${id}/compact`, { to: new Date(Date.now() + 60_000).toISOString() })

      const job = await start()
      const [, signal] = await once(installation.spawn('delivery', { instead: child, args: [moment] }), 'exit')
      expect(signal, installation.log).toBe('SIGKILL')
      expect(await read()).toEqual([0, 1, 2, 3, 4, 5])
      // A job that is canceled keeps its sources for the next one: the marker of a compaction may be in the bucket already.
      await installation.ok('POST', `/v1/jobs/${job.id}/cancel`)
      const next = await start()
      expect(next.segments.total).toBe(2)

      installation.spawn('delivery')
      await send(6)
      await until('the end of the job', async () => {
        const rows = await read()
        expect(rows).toEqual(rows.length === 6 ? [0, 1, 2, 3, 4, 5] : [0, 1, 2, 3, 4, 5, 6, 7])
        return (await progress(next)).finished_at !== null
      })
      expect(await progress(next)).toMatchObject({ status: 'succeeded', segments: { total: 2, failed: 0 } })
      expect(await read()).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
      const made = compactions(installation, bucket, id)
      expect(made.map(({ compacted }) => compacted.kind).toSorted()).toEqual(['parquet', kind])
    },
  )
})

function compactions(installation: Installation, bucket: string, id: string): readonly CompactionMarker[] {
  const markers = installation.markers(bucket, id) as unknown as readonly CompactionMarker[]
  return markers.filter(({ compacted }) => compacted !== undefined)
}

/** Reads the rows of each commit where markers of compactions say they are, in the order of the commits. */
async function readByMarkers(installation: Installation, bucket: string, id: string): Promise<readonly number[]> {
  const commits = installation.markers(bucket, id).filter(({ seq }) => seq !== undefined)
  const moved = compactions(installation, bucket, id).filter(({ compacted }) => compacted.kind === kind)
  const numbers: number[] = []
  for (const { id, artifacts } of commits) {
    const parts = moved.flatMap(({ compacted }) => {
      const source = compacted.sources.find((each) => each.id === id)
      return source === undefined ? [] : [{ key: compacted.key, from: source.first_row, to: source.first_row + source.rows }]
    })
    expect(parts.length, 'a file is moved once').toBeLessThanOrEqual(1)
    const [part = { key: artifacts[kind]?.key ?? '', from: 0, to: undefined }] = parts
    const rows = await readWithDuckDb([join(installation.buckets, bucket, part.key)])
    numbers.push(...rows.slice(part.from, part.to).map(({ n }) => Number(n)))
  }
  return numbers
}
