/** Delivery finds damage in a bucket by itself. The status of the endpoint says so. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

const bucket = 'scrubbed'

test('a file whose content changed in the bucket is a reason of the status until it is repaired', async () => {
  await using inlet = await Installation.create()
  await inlet.start('control', 'ingest', 'delivery')
  const { id } = await inlet.endpoint({ bucket, output_formats: ['parquet'] })
  const { body } = await inlet.ingest(id, '{"n":1}')
  await inlet.committed(id, [body.segment_seq])
  await inlet.end('delivery', 'SIGTERM')
  const [path = ''] = inlet.artifacts(bucket, id, 'parquet')
  const intact = readFileSync(path)
  const bytes = Buffer.from(intact)
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1
  writeFileSync(path, bytes)
  const due = { due_at: '2026-01-01T00:00:00.000Z', running: null, completed: null, findings: [], unlisted: 0 }
  writeFileSync(join(inlet.directory, 'node/scrub.json'), JSON.stringify(due))

  await inlet.start('delivery')
  const reasons = async (): Promise<readonly string[]> => (await inlet.ok('GET', `/v1/endpoints/${id}`)).status_reasons
  const isFound = async () => (await reasons()).some((reason) => reason.includes('the scrub found'))
  await until('the damage is in the status', isFound, 60_000)
  const [reason = ''] = (await reasons()).filter((each) => each.includes('the scrub found'))
  expect(reason).toMatch(/^the scrub found 1 damaged file: .*\.parquet .*; inlet scrub on node .* lists all and says what to do$/)

  await inlet.end('delivery', 'SIGTERM')
  writeFileSync(path, intact)
  await inlet.start('delivery')
  await until('the damage is gone from the status', async () => !(await isFound()), 60_000)
})
