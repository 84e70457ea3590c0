/** Copies in a bucket of a real S3: records are in it when they are acknowledged, and gone once they are delivered. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { CreateBucketCommand, paginateListObjectsV2, S3Client } from '@aws-sdk/client-s3'
import { expect, test } from 'vitest'
import { copyFolder } from '#copies/copy-names.ts'
import { openCopyStore } from '#copies/open-store.ts'
import { removalOf, restoreLog } from '#copies/restore.ts'
import { systemClock } from '#lib/clock.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { pieceBytes, type SegmentPiece } from '#log/segment-piece.ts'
import { Installation } from '../support/installation.ts'
import { describeGateway } from '../support/object-gateway.ts'
import { until } from '../support/until.ts'

describeGateway('copies on S3', (gateway) => {
  const { accessKeyId, secretAccessKey } = gateway.customer
  const client = new S3Client({
    ...{ endpoint: gateway.url, region: 'us-east-1', forcePathStyle: true },
    credentials: { accessKeyId, secretAccessKey },
  })

  test('hold what is acknowledged until it is delivered, and a log is restored from them', { timeout: 120_000 }, async () => {
    const bucket = `copies-${Date.now()}`
    await client.send(new CreateBucketCommand({ Bucket: bucket }))
    const environment = {
      INLET_COPY_URL: `s3://${bucket}/in/let`,
      INLET_COPY_S3_ENDPOINT: gateway.url,
      INLET_COPY_ACCESS_KEY_ID: accessKeyId,
      INLET_COPY_SECRET_ACCESS_KEY: secretAccessKey,
    }
    await using installation = await Installation.create({ environment })
    await installation.start('control', 'ingest', 'delivery')
    const { id } = await installation.endpoint({ bucket: 'lake', copies: 2, segment_max_age_seconds: 3600 })
    // Until the store has answered a new node, records are refused.
    await until('the store', async () => (await installation.ingest(id, '{"n":1}')).status === 202)
    let nodeId = ''
    for (let n = 2; n <= 20; n += 1) {
      const { status, body } = await installation.ingest(id, `{"n":${n}}`)
      expect(status).toBe(202)
      nodeId = body.node_id
    }
    const keys = async () => {
      const found: string[] = []
      for await (const { Contents = [] } of paginateListObjectsV2({ client }, { Bucket: bucket }))
        found.push(...Contents.flatMap(({ Key }) => Key ?? []))
      return found.filter((key) => /\/\d{20}$/.test(key) && !key.includes('/writer/'))
    }
    const folder = copyFolder('in/let', nodeId)
    expect((await keys()).filter((key) => key.startsWith(folder)).length).toBeGreaterThan(0)

    // As another machine does it.
    const copyUrl = { kind: 's3', bucket, prefix: 'in/let' } as const
    const config = { copyS3Endpoint: gateway.url, copyRegion: 'us-east-1', copyPathStyle: 'true' }
    const opened = await openCopyStore(
      { copyUrl, ...config, copyAccessKeyId: accessKeyId, copySecretAccessKey: secretAccessKey },
      system,
    )
    const pieces: SegmentPiece[] = []
    const sink = {
      async write(piece: SegmentPiece) {
        pieces.push(piece)
        return pieceBytes(piece)
      },
      remove: async () => undefined,
      close: async () => undefined,
    }
    const signal = new AbortController().signal
    const place = { store: opened.store, folder }
    const logger = createLogger('test', 'silent')
    const restored = await restoreLog({
      ...system,
      ...place,
      nodeId,
      by: 'another',
      pieces: sink,
      findDelivered: async () => [],
      clock: systemClock,
      logger,
      signal,
    })
    const [name = ''] = readdirSync(join(installation.directory, 'node/wal', id)).filter((file) => file.endsWith('.open'))
    expect(name).toContain(String(pieces[0]?.seq))
    expect(pieces.map(({ at }) => at)).toEqual(
      pieces.map((_, index) => pieces.slice(0, index).reduce((sum, piece) => sum + pieceBytes(piece), 0)),
    )

    // It is fenced.
    expect(await installation.ingest(id, '{"n":21}')).toMatchObject({ status: 503 })
    await until('the status', async () => {
      const { status_reasons } = await installation.ok('GET', `/v1/endpoints/${id}`)
      return status_reasons.join().includes('another machine has taken over this node, and has its copies')
    })
    await removalOf(place, restored)(signal)
    // One fence, and the objects that close the incarnations of records and of keys.
    expect(await keys()).toHaveLength(3)
    opened.close()
  })
})
