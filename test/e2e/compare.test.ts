/** A changed view on what a node delivered, beside the published one, and what both then deliver. */
import { expect, test } from 'vitest'
import { describeWith, useDeployment } from '../support/deployment.ts'

const deployment = useDeployment()

const columns = [
  { name: 'id', type: 'BIGINT', path: '$.id', required: true },
  { name: 'city', type: 'VARCHAR', path: '$.city' },
]
const changed = { columns: [columns[0], { name: 'city', type: 'VARCHAR', path: '$.town' }], filters: [{ condition: 'id < 900' }] }

describeWith('objects', 'a comparison on stored records', () => {
  test('says what the changed version then delivers', async () => {
    const { id, viewId, viewName } = await deployment().endpoint({
      bucket: 'compare',
      view: { name: deployment().unique('compare'), definition: { columns } },
    })
    const send = async () => {
      const lines = Array.from({ length: 1_000 }, (_, n) =>
        JSON.stringify({ id: n % 50 === 0 ? 'x' : n, city: 'Ulm', town: 'Bonn' }),
      )
      const { status, body } = await deployment().ingest(id, `${lines.join('\n')}\n`)
      expect(status).toBe(202)
      await deployment().committed(id, [body.segment_seq])
      return body.segment_seq
    }
    await send()
    const compared = await deployment().ok('POST', `/v1/views/${viewId}/compare`, { definition: changed })
    expect(compared).toMatchObject({
      ...{ view_name: viewName, records_stored: 1_000, records_read: 1_000, is_complete: true },
      before: { rows: 980, dlq: 20 },
      after: { rows: 882, dropped: 98, dlq: 20, dead_letters: [{ error_code: 'cast_failed', column: 'id', records: 20 }] },
      outcome_changes: [{ before: 'accepted', after: 'dropped', records: 98 }],
      columns: [
        { name: 'id', values_differ: 0 },
        { name: 'city', values_differ: 882, samples: Array(5).fill({ value_before: 'Ulm', value_after: 'Bonn' }) },
      ],
    })
    const { id: next } = await deployment().ok('POST', `/v1/views/${viewId}/versions`)
    await deployment().ok('PATCH', `/v1/views/${next}`, { definition: changed })
    await deployment().ok('POST', `/v1/views/${next}/publish`)
    await deployment().ok('POST', `/v1/endpoints/${id}/views`, { view_id: next })
    const seq = await send()
    const markers = await deployment().markers(id)
    const views = markers.find((marker) => marker.seq === seq)?.views ?? []
    const counts = (version: number) => {
      const { accepted, dropped, dlq } = views.find(({ view_version }) => view_version === version) ?? {}
      return { accepted, dropped, dlq }
    }
    for (const [side, version] of [
      ['before', 1],
      ['after', 2],
    ] as const) {
      const { accepted, dropped, dlq } = compared[side]
      expect(counts(version)).toEqual({ accepted, dropped, dlq })
    }
  })
})
