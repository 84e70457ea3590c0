/** A machine with a copy store that is lost: a person says so. */
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startElsewhere, startWithCopies } from '../support/machines-with-copies.ts'
import { until } from '../support/until.ts'

test('what a lost machine acknowledged with two copies is delivered by another one, once, and the machine may not come back', async () => {
  const { installation, objects } = await startWithCopies()
  await using _ = installation
  const { id } = await installation.endpoint({ bucket: 'lake', copies: 2, segment_max_age_seconds: 3600 })
  const lost = (await installation.ingest(id, '{"n":1}')).body.node_id
  for (let n = 2; n <= 20; n += 1) expect((await installation.ingest(id, `{"n":${n}}`)).status).toBe(202)
  const { ingestUrl } = installation
  const signal = (name: NodeJS.Signals) => {
    for (const command of ['ingest', 'delivery']) process.kill(installation.pid(command) ?? 0, name)
  }
  signal('SIGSTOP')
  // They wait in the queue of its socket.
  const send = async () => (await installation.ingest(id, '{"n":21}').catch(() => undefined))?.status
  const queued = Promise.all(Array.from({ length: 20 }, send))

  await startElsewhere(installation)

  const adoption = await installation.run('node', '--adopt-copy', lost)
  expect([adoption.exitCode, adoption.log]).toEqual([0, expect.stringContaining('log restored from its copies')])
  const commits = async () => (await installation.ok('GET', `/v1/endpoints/${id}/commits`)).items
  expect(await commits()).toMatchObject([{ node_id: lost, records: 20 }])
  expect(await installation.ok('GET', `/v1/endpoints/${id}/receipts/${lost}-0`)).toMatchObject({ state: 'delivered' })
  expect((await installation.ok('GET', '/v1/losses')).items.filter(({ state }: { state: string }) => state === 'open')).toEqual(
    [],
  )
  // Only those that close the incarnations of records and of keys.
  expect(objects()).toHaveLength(2)

  // The machine was only frozen.
  signal('SIGCONT')
  // It resets those that waited for too long. 500 for a record that was stored when the node learned of it: it may be delivered.
  expect((await queued).filter((status) => status !== undefined && ![500, 503].includes(status))).toEqual([])
  const refused = await installation.ingest(id, '{"n":22}')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)])
  const readiness = async () => await (await fetch(`${ingestUrl}/readyz`)).text()
  await until('the refusal', async () => (await readiness()).includes('another machine adopted the log of this node'), 15_000)
  for (const command of ['ingest', 'delivery'] as const) expect(await installation.end(command, 'SIGTERM')).toBe(0)
  expect(await commits()).toMatchObject([{ node_id: lost, records: 20 }])

  // It comes back with its disk, and then without.
  installation.configure({ INLET_DATA_DIR: installation.directory, INLET_INGEST_LISTEN: new URL(ingestUrl).host })
  const refusals = () => installation.log.split('another machine adopted the log of this node').length
  const before = refusals()
  installation.spawn('ingest')
  await until('the refusal', () => refusals() > before, 30_000)
  expect((await installation.ingest(id, '{"n":23}').catch(() => undefined))?.status ?? 503).toBe(503)
  await installation.end('ingest', 'SIGTERM')
  renameSync(join(installation.directory, 'node'), join(installation.directory, 'lost-disk'))
  await installation.start('ingest')
  await until('data', async () => (await installation.ingest(id, '{"n":24}')).status === 202, 15_000)
  expect((await installation.ingest(id, '{"n":25}')).body.node_id).not.toBe(lost)
}, 240_000)
