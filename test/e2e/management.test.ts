/** The management API with real nodes behind it: nodes do what the API reports. */
import { expect, test } from 'vitest'
import { useDeployment } from '../support/deployment.ts'
import { until } from '../support/until.ts'

const deployment = useDeployment()

test('a deleted endpoint rejects records at once, delivers what it has, and is gone', {
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
