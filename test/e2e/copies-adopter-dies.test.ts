/**
 * A machine that takes over another one by its copies is killed while it delivers, and goes on.
 * Law: each record that the lost machine acknowledged is in the bucket once.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startElsewhere, startWithCopies } from '../support/machines-with-copies.ts'
import { queryRows } from '../support/parquet.ts'

const [endpoints, recordsEach] = [24, 5]

test('killed while it delivers, once a file and once a commit is in the bucket, it goes on', async () => {
  const { installation } = await startWithCopies()
  await using _ = installation
  const settings = { bucket: 'lake', copies: 2, segment_max_age_seconds: 3600 } as const
  const first = await installation.endpoint(settings)
  const { destination_id } = await installation.ok('GET', `/v1/endpoints/${first.id}`)
  const others = Array.from({ length: endpoints - 1 }, () => installation.endpoint({ ...settings, destination_id }))
  const ids = [first, ...(await Promise.all(others))].map(({ id }) => id)
  const sent = ids.flatMap((id) => Array.from({ length: recordsEach }, (_, n) => ({ id, n })))
  const answers = await Promise.all(sent.map(({ id, n }) => installation.ingest(id, JSON.stringify({ id, n }))))
  expect(answers.filter(({ status }) => status !== 202)).toEqual([])
  const lost = answers[0]?.body.node_id
  for (const command of ['ingest', 'delivery']) await installation.kill(command)
  rmSync(join(installation.directory, 'node'), { recursive: true })
  await startElsewhere(installation)

  const lake = join(installation.buckets, 'lake')
  const committed = () => ids.flatMap((id) => installation.markers('lake', id))
  for (const part of ['.parquet', '/commits/']) {
    const adopter = installation.spawn('node', { args: ['--adopt-copy', lost] })
    const isThere = () => readdirSync(lake, { recursive: true, encoding: 'utf8' }).some((path) => path.includes(part))
    while (!(existsSync(lake) && isThere()) && adopter.exitCode === null) await setImmediate()
    await installation.kill('node')
    expect(committed().length).toBeLessThan(endpoints)
  }
  expect((await installation.run('node', '--adopt-copy', lost)).exitCode).toBe(0)

  expect(committed().map(({ records }) => records)).toEqual(ids.map(() => recordsEach))
  const files = ids.flatMap((id) => installation.artifacts('lake', id, 'parquet')).map((file) => `'${file}'`)
  const { rows } = await queryRows(`SELECT count(*)::INT, count(DISTINCT payload)::INT FROM read_parquet([${files}])`)
  expect(rows).toEqual([[sent.length, sent.length]])
  const { items } = await installation.ok('GET', '/v1/losses')
  expect(items.filter(({ state }: { readonly state: string }) => state === 'open')).toEqual([])
}, 240_000)
