/** `inlet doctor --store` finds real stores honest, and leaves nothing in them. */
import {
  CreateBucketCommand,
  DeleteBucketCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  S3Client,
} from '@aws-sdk/client-s3'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { describeOwnStores } from '../support/own-stores.ts'

type Finding = { readonly check: string; readonly status: string; readonly message: string }

describeOwnStores(({ start }) => {
  test('is safe for two copies and for a takeover by itself', async () => {
    const { url, region, accessKeyId, secretAccessKey, stop } = await start()
    await using stack = new AsyncDisposableStack()
    stack.defer(stop)
    const client = new S3Client({ endpoint: url, region, forcePathStyle: true, credentials: { accessKeyId, secretAccessKey } })
    stack.defer(() => client.destroy())
    const Bucket = `copies-${Date.now()}`
    await client.send(new CreateBucketCommand({ Bucket }))
    stack.defer(async () => void (await client.send(new DeleteBucketCommand({ Bucket }))))
    const { code, out } = await runCli(['doctor', '--json', '--store', `s3://${Bucket}/in/let`], {
      environment: {
        ...{ INLET_DATA_DIR: '/nowhere', INLET_COPY_S3_ENDPOINT: url, INLET_COPY_REGION: region },
        ...{ INLET_COPY_ACCESS_KEY_ID: accessKeyId, INLET_COPY_SECRET_ACCESS_KEY: secretAccessKey },
      },
    })
    const findings: readonly Finding[] = JSON.parse(out)
    expect([code, findings.filter(({ status }) => status === 'fail')]).toEqual([0, []])
    expect(findings.flatMap(({ check }) => (check.startsWith('safe: ') ? [check.slice(6)] : []))).toEqual([
      ...['two copies', 'takeover by hand', 'takeover by itself', 'markers put once', 'uploads in parts'],
    ])
    expect((await client.send(new ListObjectsV2Command({ Bucket }))).Contents ?? []).toEqual([])
    expect((await client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads ?? []).toEqual([])
  })
})
