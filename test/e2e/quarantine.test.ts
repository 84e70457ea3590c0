/** A segment without an intact frame: its receipt says where it is and what to do, until the operator discards it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

test('the receipt of a segment in quarantine says so until it is discarded', { timeout: 120_000 }, async () => {
  await using installation = await Installation.create()
  await installation.start('control', 'ingest', 'delivery')
  const { id } = await installation.endpoint({ bucket: 'lake' })
  const send = async (line: string): Promise<{ readonly node_id: string; readonly segment_seq: number }> => {
    const { body } = await installation.ingest(id, line)
    const name = `${String(body.segment_seq).padStart(12, '0')}-`
    const isSealed = (file: string) => file.startsWith(name) && file.endsWith('.wal')
    await until('the seal', () => installation.walFiles(id).some(isSealed), 15_000)
    return body
  }
  const { body: first } = await installation.ingest(id, '{"n":0}')
  await installation.committed(id, [first.segment_seq])
  await until('the removal', () => installation.walFiles(id).length === 0, 15_000)
  await installation.end('delivery', 'SIGTERM')
  const { node_id, segment_seq } = await send('{"n":1}')
  const [file = ''] = installation.walFiles(id)
  const path = join(installation.directory, 'node/wal', id, file)
  const later = await send('{"n":2}')
  const bytes = readFileSync(path)
  bytes.fill(0xff, 128)
  writeFileSync(path, bytes)

  await installation.start('delivery')
  await installation.committed(id, [later.segment_seq])
  const receipt = () => installation.ok('GET', `/v1/endpoints/${id}/receipts/${node_id}-${segment_seq}`)
  await until('the report', async () => (await receipt()).reason.includes('is in quarantine'), 15_000)
  expect(await receipt()).toMatchObject({ state: 'waiting', commit_id: null, keys: [] })
  expect((await receipt()).reason).toContain('the operator finds out why with `inlet segments list` there')

  const name = `${id}/${file.replace(/^0+(?=\d)/, '').replace('.wal', '')}`
  expect((await installation.run('segments', 'list')).log).toContain(name)
  expect((await installation.run('segments', 'discard', name, '--yes')).exitCode).toBe(0)
  // A report made right after the later commit is no proof.
  await until('the loss', async () => (await receipt()).state === 'lost', 30_000)
})
