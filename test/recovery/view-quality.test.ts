/** Data drifts: a new field, another type, more nulls. The metrics of the view show it once it is committed, and count it once. */
import { expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

const view = {
  name: 'orders',
  definition: {
    columns: [
      { name: 'id', type: 'BIGINT', path: '$.id', required: true },
      { name: 'amount', type: 'DECIMAL(12,2)', path: '$.amount' },
      { name: 'at', type: 'TIMESTAMP', path: '$.at', cast_failures: 'dlq' },
      { name: 'user', type: 'VARCHAR', path: '$.user.name' },
    ],
  },
}
const order = (id: number, change: object = {}) =>
  JSON.stringify({
    id,
    amount: `${id}.50`,
    at: `1969-12-31T23:00:${String(id % 60).padStart(2, '0')}Z`,
    user: { name: `u${id}` },
    ...change,
  })
const sound = Array.from({ length: 40 }, (_, index) => order(1_000 + index))
const drifted = [
  ...Array.from({ length: 20 }, (_, index) => order(2_000 + index, { coupon: index % 2 === 0 ? 'X' : { code: 'X' } })),
  ...Array.from({ length: 5 }, (_, index) => order(3_000 + index, { amount: 'a lot' })),
  ...Array.from({ length: 10 }, (_, index) => order(4_000 + index, { amount: null, user: `u${index}` })),
  ...Array.from({ length: 3 }, () => order(5_000, { at: 1_700_000_000 })),
  ...Array.from({ length: 2 }, () => order(6_000, { id: null })),
]

describeWith('processes', 'drift', () => {
  test('drift metrics survive crashes and repeated commits without double counting', async () => {
    await using installation = await Installation.create()
    await installation.start('control', 'ingest', 'delivery')
    const { id, viewId } = await installation.endpoint({ bucket: 'drift', view })
    const detail = async () => {
      const { endpoints, aggregated } = await installation.ok('GET', `/v1/views/${viewId}/metrics?detail=columns`)
      const { columns, unmapped_paths } = endpoints[0] ?? aggregated
      expect(aggregated).toMatchObject({ columns, unmapped_paths })
      // biome-ignore lint/suspicious/noExplicitAny: see Answer
      return { columns: columns as any[], paths: unmapped_paths as any[] }
    }
    const send = async (lines: readonly string[]) => {
      const { body } = await installation.ingest(id, lines.join('\n'))
      return body.segment_seq as number
    }

    await installation.committed(id, [await send(sound)])
    const before = await detail()
    expect(before.paths).toEqual([])
    const none = { nulls: 0, null_rate_pct: 0, cast_failures: 0, cast_nulls: 0, cast_dlq: 0, missing: 0 }
    expect(before.columns.map(({ last_24h }) => last_24h)).toEqual([
      { values: 40, ...none, min: '1000', max: '1039' },
      { values: 40, ...none, min: '1000.50', max: '1039.50' },
      { values: 40, ...none, min: '1969-12-31T23:00:00.000000Z', max: '1969-12-31T23:00:59.000000Z' },
      { values: 40, ...none, min: 'u1000', max: 'u1039' },
    ])

    // Wherever the processes were: repeated work has the same names and is the same commit.
    await installation.end('delivery', 'SIGTERM')
    const seq = await send(drifted)
    await until('the seal', () => installation.walFiles(id).every((name) => name.endsWith('.wal')))
    installation.spawn('delivery')
    await until('the marker', () => installation.markers('drift', id).some((marker) => marker.seq === seq), 60_000)
    await installation.kill('delivery')
    await installation.kill('control')
    await installation.start('control', 'delivery')
    await installation.committed(id, [seq])
    await until('the node to be empty', () => installation.walFiles(id).length === 0)

    const { columns, paths } = await detail()
    const drift = [
      { values: 75, ...none, missing: 2, min: '1000', max: '4009' },
      { values: 60, ...none, nulls: 15, null_rate_pct: 20, cast_failures: 5, cast_nulls: 5, min: '1000.50', max: '2019.50' },
      {
        values: 75,
        ...none,
        cast_failures: 3,
        cast_dlq: 3,
        min: '1969-12-31T23:00:00.000000Z',
        max: '1969-12-31T23:00:59.000000Z',
      },
      { values: 65, ...none, nulls: 10, null_rate_pct: 13.33, min: 'u1000', max: 'u3004' },
    ]
    expect(columns.map(({ last_24h }) => last_24h)).toEqual(drift)
    expect(columns.map(({ all_time }) => all_time)).toEqual(drift)
    expect(
      paths.map(({ path, types, records, sampled_records, seen_pct }) => [path, types, records, sampled_records, seen_pct]),
    ).toEqual([
      ['$.coupon', ['string', 'object'], 20, 80, 25],
      ['$.user', ['string'], 10, 80, 12.5],
    ])
  })
})
