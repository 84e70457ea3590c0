/** The management API with real nodes behind it: nodes do what the API reports. */
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { useDeployment } from '../support/deployment.ts'
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

const deployment = useDeployment()

test.concurrent('a preview agrees with delivery, and files of dead letters can be downloaded', async () => {
  const { id, viewId } = await deployment().endpoint({ bucket: 'previewed', view: { name: 'strict', definition } })
  const preview = await deployment().ok('POST', '/v1/views/preview', { definition, samples })
  expect(await deployment().ingest(id, `${samples.join('\n')}\n`)).toMatchObject({ status: 202 })
  await until('the dead letters', async () => (await deployment().ok('GET', `/v1/views/${viewId}/dlq-files`)).total === 1, 30_000)
  const { files } = await deployment().ok('GET', `/v1/views/${viewId}/dlq-files`)
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
  const expected = preview.errors.map(
    (error: { sample_index: number; column: string | null; code: string; message: string }) => ({
      ...{ record_index: error.sample_index, error_code: error.code, column: error.column, message: error.message },
      record: samples[error.sample_index],
    }),
  )
  expect(rows).toMatchObject(expected)
  const { aggregated } = await deployment().ok('GET', `/v1/views/${viewId}/metrics`)
  expect(preview.counts).toEqual({ processed: 5, accepted: 1, dropped: 1, dlq: 3, failed: 0 })
  expect(aggregated.all_time).toEqual({ ...preview.counts, redriven: 0 })
})

test.concurrent('a paused endpoint rejects records, a resumed one accepts them', async () => {
  const { id } = await deployment().endpoint({ bucket: 'paused' })
  const isRejected = async () => (await deployment().ingest(id, '{"id":1}\n')).status === 503
  expect(await deployment().ingest(id, '{"id":1}\n')).toMatchObject({ status: 202 })
  expect(await deployment().ok('POST', `/v1/endpoints/${id}/pause`)).toMatchObject({ status: 'paused' })
  await until('the node to reject records', isRejected)
  await deployment().ok('POST', `/v1/endpoints/${id}/resume`)
  await until('the node to accept records', async () => !(await isRejected()))
})

test.concurrent('a deleted endpoint rejects records at once, delivers what it has, and is gone', {
  timeout: 60_000,
}, async () => {
  const { id } = await deployment().endpoint({ bucket: 'deleted', segment_max_age_seconds: 2 })
  let accepted = 0
  const send = async () => {
    const { status } = await deployment().ingest(id, '{"id":1}\n')
    if (status === 202) accepted += 1
    return status
  }
  for (let index = 0; index < 5; index += 1) expect(await send()).toBe(202)
  expect((await deployment().api('DELETE', `/v1/endpoints/${id}`)).status).toBe(204)
  await until('the node to reject records', async () => (await send()) === 404)
  await until(
    'the endpoint to be gone',
    async () => (await deployment().api('GET', `/v1/endpoints/${id}`)).status === 404,
    40_000,
  )
  if (deployment().canReadObjects) {
    const delivered = (await deployment().markers(id)).reduce((sum, { records }) => sum + records, 0)
    expect(delivered).toBe(accepted)
  }
  await until('the log to be empty', () => deployment().walFiles(id).length === 0)
})
