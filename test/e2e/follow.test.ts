/** Test events, which the console follows to their rows: browser/first-visit.test.ts. */
import { expect, test } from 'vitest'
import { useDeployment } from '../support/deployment.ts'
import { until } from '../support/until.ts'

const deployment = useDeployment()

test('a test event has a receipt, and a paused endpoint refuses it in the words of ingest', async () => {
  const { id } = await deployment().endpoint({ bucket: 'refused' })
  const sent = await deployment().ok('POST', `/v1/endpoints/${id}/test-events`, { record: '{"mine":1}' })
  expect(sent).toMatchObject({ record: '{"mine":1}', url: expect.stringContaining(`/v1/ingest?endpoint=${id}`) })
  expect([sent.segment_seq, sent.acknowledged_after_ms > 0]).toEqual([0, true])
  await deployment().ok('POST', `/v1/endpoints/${id}/pause`)
  const send = () => deployment().request('POST', `/v1/endpoints/${id}/test-events`, {})
  // Until the node has heard of it.
  await until('the refusal', async () => (await send()).status === 503, 30_000)
  expect((await send()).body).toMatchObject({ detail: expect.stringMatching(/^ingest refused the test event: .*paused/) })
})
