/** A deleted endpoint delivers everything first: with other settings on the way, and with processes that hang, die and come back. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

test('an open segment is delivered before its endpoint is gone, whatever the age was changed to and whoever hangs', {
  timeout: 120_000,
}, async () => {
  await using installation = await Installation.create()
  await installation.start('control', 'ingest')
  const { id } = await installation.endpoint({ bucket: 'drained', segment_max_age_seconds: 3600 })
  for (let index = 0; index < 5; index += 1) expect((await installation.ingest(id, '{"id":1}\n')).status).toBe(202)
  process.kill(Number(installation.pid('ingest')), 'SIGSTOP')
  await installation.ok('PATCH', `/v1/endpoints/${id}`, { segment_max_age_seconds: 1 })
  await installation.ok('DELETE', `/v1/endpoints/${id}`)
  await installation.kill('control')
  await installation.start('control', 'delivery')

  const reasons = async (): Promise<string> => {
    const { status, status_reasons } = await installation.ok('GET', `/v1/endpoints/${id}`)
    expect(status).toBe('draining')
    return status_reasons.join('; ')
  }
  await until('the report of the open segment', async () => /1 segment \(1 open; \d+ bytes\)/.test(await reasons()), 30_000)

  process.kill(Number(installation.pid('ingest')), 'SIGCONT')
  await until(
    'the endpoint to be gone',
    async () => (await installation.api('GET', `/v1/endpoints/${id}`)).status === 404,
    30_000,
  )
  expect(installation.markers('drained', id).reduce((sum, { records }) => sum + records, 0)).toBe(5)
  await until('the log to be empty', () => installation.walFiles(id).length === 0)

  // By force nothing is delivered any more, and the operator sees what is left.
  const forced = await installation.endpoint({ bucket: 'forced', segment_max_age_seconds: 3600 })
  expect((await installation.ingest(forced.id, '{"id":1}\n')).status).toBe(202)
  const { abandoned } = await installation.ok('DELETE', `/v1/endpoints/${forced.id}?force=true`)
  const [{ node_id }] = abandoned
  const authorization = `Bearer ${readFileSync(join(installation.directory, 'operator-token'), 'utf8').trim()}`
  await until('the report of the unowned segment', async () => {
    const response = await fetch(`${installation.apiUrl}/v1/nodes/${node_id}/segments?owner=deleted`, {
      headers: { authorization },
    })
    const { items } = JSON.parse(await response.text())
    return items[0]?.endpoint_id === forced.id && items[0].sealed_segments === 1 && items[0].bytes > 0
  })
  expect(installation.markers('forced', forced.id)).toEqual([])
})
