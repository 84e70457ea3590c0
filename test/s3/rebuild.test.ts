/** `inlet commits rebuild` against a real S3 restores what a database lost. */
import { once } from 'node:events'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Sender } from '../support/acknowledged.ts'
import { Installation } from '../support/installation.ts'
import { Customer, describeGateway, gatewayEnvironment } from '../support/object-gateway.ts'
import { until } from '../support/until.ts'

describeGateway('inlet commits rebuild', (gateway) => {
  const customer = new Customer(gateway)

  test('after the restore of an older copy: commits, DLQ files and metrics as before, also in a second run', async () => {
    await using installation = await Installation.create({ environment: gatewayEnvironment(gateway) })
    await installation.start('control', 'ingest', 'delivery')
    const destination = await customer.destination(installation)
    await installation.ok('POST', `/v1/destinations/${destination.id}/validate`)
    const view = {
      name: 'numbers',
      definition: { columns: [{ name: 'number', type: 'TINYINT', path: '$.number', cast_failures: 'dlq' }] },
    }
    const { bucket } = destination
    const { id, viewId } = await installation.endpoint({ bucket, destination_id: destination.id, view })
    await installation.end('control', 'SIGTERM')
    const database = join(installation.directory, 'inlet.db')
    const copy = join(installation.directory, 'copy.db')
    await copyFile(database, copy)
    await installation.start('control')

    const sender = new Sender(installation, id, { recordsPerRequest: 100 })
    for (let segment = 0; segment < 5; segment += 1) {
      await sender.send()
      await installation.committed(id, sender.seqs)
    }
    const shown = async () => ({
      commits: (await installation.commits(id)).map((commit) => ({ ...commit, uploaded_at: undefined })),
      metrics: (await installation.ok('GET', `/v1/views/${viewId}/metrics`)).aggregated.all_time,
      dlq: (await installation.ok('GET', `/v1/views/${viewId}/dlq-files`)).files.map(({ s3_key }: { s3_key: string }) => s3_key),
    })
    const before = await shown()
    expect(before).toMatchObject({ metrics: { processed: 500, accepted: 128, dlq: 372 } })
    expect(before.commits.length).toBeGreaterThanOrEqual(5)

    const restored = async () => {
      await installation.end('control', 'SIGTERM')
      await copyFile(copy, database)
      await installation.start('control')
    }
    await restored()
    expect((await shown()).commits).toEqual([])
    // The control process keeps running.
    expect(await rebuild(installation, '--endpoint', id, '--destination', destination.id)).toMatchObject({
      code: 0,
      output: expect.stringContaining(`${before.commits.length} recorded, 0 already known, 0 rejected`),
    })
    expect(await shown()).toEqual(before)
    expect(await rebuild(installation, '--endpoint', id, '--destination', destination.id)).toMatchObject({
      code: 0,
      output: expect.stringContaining('0 recorded'),
    })
    expect(await shown()).toEqual(before)
    // New segments are delivered as usual.
    await sender.send()
    await installation.committed(id, sender.seqs)
    expect((await installation.commits(id)).slice(1).map((commit) => ({ ...commit, uploaded_at: undefined }))).toEqual(
      before.commits,
    )
  })

  test('restores what a backfill added', async () => {
    await using installation = await Installation.create({ environment: gatewayEnvironment(gateway) })
    await installation.start('control', 'ingest', 'delivery')
    const destination = await customer.destination(installation)
    const { bucket } = destination
    const { id } = await installation.endpoint({ bucket, destination_id: destination.id })
    const sender = new Sender(installation, id)
    await sender.send()
    await installation.committed(id, sender.seqs)
    const definition = { columns: [{ name: 'number', type: 'INTEGER', path: '$.number' }] }
    const { id: viewId } = await installation.ok('POST', '/v1/views', { name: 'later', definition })
    await installation.ok('POST', `/v1/views/${viewId}/publish`)
    await installation.end('control', 'SIGTERM')
    const database = join(installation.directory, 'inlet.db')
    const copy = join(installation.directory, 'copy.db')
    await copyFile(database, copy)
    await installation.start('control')
    const job = await installation.ok('POST', `/v1/views/${viewId}/backfill`, { endpoint_id: id })
    const status = async () => (await installation.ok('GET', `/v1/jobs/${job.id}`)).status
    await until('the backfill to succeed', async () => (await status()) === 'succeeded', 60_000)
    const before = await installation.commits(id)
    expect(before).toMatchObject([{ artifacts: { 'views/later/v1': expect.anything(), 'manifest/later/v1': expect.anything() } }])
    await installation.end('control', 'SIGTERM')
    await copyFile(copy, database)
    await installation.start('control')
    expect((await installation.commits(id))[0]).not.toHaveProperty('artifacts.views/later/v1')
    expect(await rebuild(installation, '--endpoint', id, '--destination', destination.id)).toMatchObject({
      code: 0,
      output: expect.stringContaining('1 recorded, 1 already known'),
    })
    expect(await installation.commits(id)).toEqual(before)
    expect(await rebuild(installation, '--endpoint', id, '--destination', destination.id)).toMatchObject({
      code: 0,
      output: expect.stringContaining('0 recorded, 2 already known'),
    })
  })

  test('reports an unreadable bucket and rebuilds from the others', async () => {
    await using installation = await Installation.create({ environment: gatewayEnvironment(gateway) })
    await installation.start('control', 'ingest', 'delivery')
    const [lost, kept] = [await customer.destination(installation), await customer.destination(installation)]
    const { id } = await installation.endpoint({ bucket: kept.bucket, destination_id: kept.id })
    const sender = new Sender(installation, id)
    await sender.send()
    await installation.committed(id, sender.seqs)
    await customer.deleteBucket(lost.bucket)
    const { code, output } = await rebuild(installation, '--endpoint', id)
    expect(code).toBe(1)
    expect(output).toContain('0 recorded, 1 already known')
    expect(output).toMatch(new RegExp(`reading bucket ${lost.bucket} failed: .*NoSuchBucket`))
  })
})

async function rebuild(installation: Installation, ...args: readonly string[]) {
  const child = installation.spawn('commits', { args: ['rebuild', ...args] })
  const parts: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part: Buffer) => parts.push(part.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output: parts.join('') }
}
