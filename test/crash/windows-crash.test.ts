/** The delivery process dies while it converts, or after it stored the keys of a segment: each event is still written once. */
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { isThorough } from '../support/thorough.ts'
import { until } from '../support/until.ts'
import { useOne } from '../support/use-one.ts'

const child = resolve(import.meta.dirname, 'delivery-child.ts')
const definition = {
  columns: [
    { name: 'id', type: 'VARCHAR', path: '$.id' },
    { name: 'n', type: 'INTEGER', path: '$.n' },
  ],
  dedupe_by: ['id'],
  dedupe_within: '1h',
}

const inlet = useOne(async () => {
  const started = await Installation.create()
  await started.start('control', 'ingest')
  return started
})

type Case = readonly [moment: string, isIndexLost: boolean, isThoroughOnly?: true]
const cases: readonly Case[] = [
  ['while it converts', false, true],
  ['before the marker', false],
  ['before the marker', true],
  ['marker, before the commit is kept', false, true],
  ['marker, before the commit is kept', true],
  ['commit kept, before it is sent', true],
]

const run = cases.filter(([, , isThoroughOnly]) => isThorough || !isThoroughOnly)
test.each(run.map(([moment, isIndexLost]) => [moment, isIndexLost] as const))(
  'killed %s, and its index lost: %s',
  async (moment, isIndexLost) => {
    const bucket = `windows-${cases.findIndex((each) => each[0] === moment && each[1] === isIndexLost)}`
    const { id, viewId } = await inlet().endpoint({ bucket, view: { name: bucket.replace('-', '_'), definition } })
    let n = 0
    const send = async (...ids: readonly string[]) => {
      const lines = ids.map((each) => {
        n += 1
        return JSON.stringify({ id: each, n })
      })
      const { status, body } = await inlet().ingest(id, lines.join('\n'))
      expect(status).toBe(202)
      await until('the seal', () =>
        inlet()
          .walFiles(id)
          .every((name) => name.endsWith('.wal')),
      )
      return body.segment_seq as number
    }
    await inlet().start('delivery')
    await inlet().committed(id, [await send('a', 'b', 'a')])
    await inlet().end('delivery', 'SIGTERM')
    const index = join(inlet().directory, 'node/windows', id, `${viewId}.db`)
    expect(existsSync(index)).toBe(true)

    const second = await send('b', 'c')
    const [, signal] = await once(inlet().spawn('delivery', { instead: child, args: [moment] }), 'exit')
    expect(signal, inlet().log).toBe('SIGKILL')
    if (isIndexLost) rmSync(index)
    const third = await send('a', 'c', 'd')
    await inlet().start('delivery')
    await inlet().committed(id, [second, third])
    await inlet().end('delivery', 'SIGTERM')

    const rows = await readWithDuckDb(inlet().artifacts(bucket, id, `views/${bucket.replace('-', '_')}/v1`))
    expect(rows.map(({ n }) => Number(n)).toSorted((a, b) => a - b)).toEqual([1, 2, 5, 8])
    const { aggregated } = await inlet().ok('GET', `/v1/views/${viewId}/metrics`)
    expect(aggregated.all_time).toMatchObject({ processed: 8, accepted: 4, dropped: 4, rows: 4, duplicates: 4 })
  },
  120_000,
)
