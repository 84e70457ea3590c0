import { expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { RecordDecider } from './decide-records.ts'

test('records of a view with partition_by are decided as in delivery, and any row can be expected', async () => {
  const decider = await RecordDecider.open(systemClock)
  try {
    const view = await decider.compile({
      columns: [
        { name: 'raw', type: 'VARCHAR', path: '$.c', hidden: true },
        { name: 'id', type: 'INTEGER', path: '$.id' },
        { name: 'c', type: 'VARCHAR', path: '$.c' },
      ],
      partition_by: ['c'],
    })
    const long = 'x'.repeat(300)
    const records = [
      { id: 1, c: 'DE' },
      { id: 2, c: long },
    ]
    const outcomes = await decider.decide(
      view,
      records.map((record) => JSON.stringify(record)),
      { originOf: () => ({ envelope: { protocol: 'http' }, receivedAtMs: 0 }), secrets: {} },
    )
    expect(outcomes).toMatchObject([
      { record: 0, row: { id: 1, c: 'DE' } },
      { record: 1, deadLetter: { error_code: 'no_partition', column: null, message: expect.stringContaining('180 bytes') } },
    ])
    const [expected] = await decider.readRows(view, [{ id: 2, c: long }])
    expect(expected?.get('c')).toEqual({ value: long })
  } finally {
    decider.close()
  }
})
