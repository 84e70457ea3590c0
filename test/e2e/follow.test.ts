/** A test event is followed from its receipt to its row in Parquet, as the console does. */
import { expect, test } from 'vitest'
import { useDeployment } from '../support/deployment.ts'
import { until } from '../support/until.ts'

const deployment = useDeployment()

/** The commit of a receipt, once there is one. */
async function commitOf(endpoint: string, { node_id, segment_seq }: { readonly node_id: string; readonly segment_seq: number }) {
  const path = `/v1/endpoints/${endpoint}/commits?node_id=${node_id}&segment_seq=${segment_seq}`
  const find = async (): Promise<readonly { readonly seq: number; readonly records: number; readonly artifacts: object }[]> =>
    (await deployment().ok('GET', path)).items
  await until('the commit', async () => (await find()).length > 0, 30_000)
  return find()
}

test('a test event has a receipt, which leads to its commit and to its row', async () => {
  const { id } = await deployment().endpoint({ bucket: 'followed' })
  const sent = await deployment().ok('POST', `/v1/endpoints/${id}/test-events`, {})
  expect(sent.url).toContain(`/v1/ingest?endpoint=${id}`)
  expect(JSON.parse(sent.record)).toMatchObject({ event: 'inlet.test_event', at: expect.stringMatching(/Z$/) })
  expect(sent.acknowledged_after_ms).toBeGreaterThan(0)
  expect(await commitOf(id, sent)).toMatchObject([{ seq: sent.segment_seq, records: 1, artifacts: { parquet: {} } }])
  const { items } = await deployment().ok(
    'GET',
    `/v1/endpoints/${id}/records?node_id=${sent.node_id}&segment_seq=${sent.segment_seq}`,
  )
  expect(items).toMatchObject([{ record: sent.record, protocol: 'http', record_index: 0, segment_seq: sent.segment_seq }])

  const own = await deployment().ok('POST', `/v1/endpoints/${id}/test-events`, { record: '{"mine":1}' })
  expect(own.record).toBe('{"mine":1}')
  expect((await commitOf(id, own))[0]).toMatchObject({ seq: own.segment_seq })
})

test('a paused endpoint refuses a test event in the words of ingest', async () => {
  const { id } = await deployment().endpoint({ bucket: 'refused' })
  await deployment().ok('POST', `/v1/endpoints/${id}/pause`)
  const send = () => deployment().request('POST', `/v1/endpoints/${id}/test-events`, {})
  // Until the node has heard of it.
  await until('the refusal', async () => (await send()).status === 503, 30_000)
  expect((await send()).body).toMatchObject({ detail: expect.stringMatching(/^ingest refused the test event: .*paused/) })
})
