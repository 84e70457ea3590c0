/** The management API with real nodes behind it: what it says of an endpoint is what the nodes do. */
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

const definition = {
  columns: [
    { name: 'id', type: 'INTEGER', path: '$.id', required: true },
    { name: 'at', type: 'TIMESTAMP', path: '$.at', cast_failures: 'dlq' },
    { name: 'kind', type: 'VARCHAR', path: '$.kind' },
  ],
  filters: [{ condition: "kind != 'noise'" }],
}
const samples = [
  '{"id":1,"at":"2026-11-20T08:00:00Z","kind":"a"}',
  '{"id":2,"kind":"noise"}',
  '{"kind":"b"}',
  '{"id":3,"at":"soon","kind":"a"}',
  '{',
]

async function started(): Promise<Installation> {
  const installation = await Installation.create()
  await installation.start('start')
  return installation
}

test('a preview says what delivery does, and the files of dead letters can be downloaded', async () => {
  await using installation = await started()
  const { id, viewId } = await installation.endpoint({ bucket: 'previewed', view: { name: 'strict', definition } })
  const preview = await installation.ok('POST', '/v1/views/preview', { definition, samples })
  expect(await installation.ingest(id, `${samples.join('\n')}\n`)).toMatchObject({ status: 202 })
  await until('the dead letters', async () => (await installation.ok('GET', `/v1/views/${viewId}/dlq-files`)).total === 1, 30_000)
  const { files } = await installation.ok('GET', `/v1/views/${viewId}/dlq-files`)
  expect(files).toMatchObject([{ endpoint_id: id, rows: 3 }])

  const response = await fetch(files[0].download_url)
  expect(response.status).toBe(200)
  const body = Buffer.from(await response.arrayBuffer())
  expect(body.length).toBe(files[0].bytes)
  const rows = gunzipSync(body)
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const said = preview.errors.map((error: { sample_index: number; column: string | null; code: string; message: string }) => ({
    ...{ record_index: error.sample_index, error_code: error.code, column: error.column, message: error.message },
    record: samples[error.sample_index],
  }))
  expect(rows).toMatchObject(said)
  const { aggregated } = await installation.ok('GET', `/v1/views/${viewId}/metrics`)
  expect(aggregated.all_time).toEqual({ processed: 5, accepted: preview.rowCount, dropped: 1, dlq: preview.errors.length })
})

test('a paused endpoint refuses, a resumed one takes', async () => {
  await using installation = await started()
  const { id } = await installation.endpoint({ bucket: 'paused' })
  const refused = async () => (await installation.ingest(id, '{"id":1}\n')).status === 503
  expect(await installation.ingest(id, '{"id":1}\n')).toMatchObject({ status: 202 })
  expect(await installation.ok('POST', `/v1/endpoints/${id}/pause`)).toMatchObject({ status: 'paused' })
  await until('the node knows', refused)
  await installation.ok('POST', `/v1/endpoints/${id}/resume`)
  await until('the node knows', async () => !(await refused()))
})

test('a deleted endpoint refuses at once, delivers what it has, and is gone', { timeout: 60_000 }, async () => {
  await using installation = await started()
  const { id } = await installation.endpoint({ bucket: 'deleted', segment_max_age_seconds: 2 })
  let accepted = 0
  const sent = async () => {
    const { status } = await installation.ingest(id, '{"id":1}\n')
    if (status === 202) accepted += 1
    return status
  }
  for (let index = 0; index < 5; index += 1) expect(await sent()).toBe(202)
  expect((await installation.api('DELETE', `/v1/endpoints/${id}`)).status).toBe(204)
  await until('the node knows', async () => (await sent()) === 404)
  await until('the end', async () => (await installation.api('GET', `/v1/endpoints/${id}`)).status === 404, 40_000)
  const delivered = installation.markers('deleted', id).reduce((sum, { records }) => sum + records, 0)
  expect(delivered).toBe(accepted)
  await until('an empty log', () => installation.walFiles(id).length === 0)
})
