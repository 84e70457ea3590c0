/** Whole installations that deliver to real stores without roles: by their own credentials, within what the operator allows. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { CreateBucketCommand } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import type { BucketTarget } from '#objects/object-store.ts'
import { S3Stores } from '#objects/s3.ts'
import { Installation } from '../support/installation.ts'
import { Customer } from '../support/object-gateway.ts'
import { describeOwnStores, type OwnStore } from '../support/own-stores.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { failureOf } from '../support/s3/target.ts'
import { until } from '../support/until.ts'

const bucket = 'inlet-lake'
const prefix = 'in/let'
const MiB = 2 ** 20
const view = {
  name: 'numbers',
  definition: { columns: [{ name: 'n', type: 'INTEGER', path: '$.n', required: true, cast_failures: 'dlq' }] },
}
const object = { contentType: 'text/plain', metadata: { seq: '7' } }

describeOwnStores((kind) => {
  let at: OwnStore
  let customer: Customer
  let installation: Installation

  beforeAll(async () => {
    at = await kind.start()
    const { accessKeyId, secretAccessKey } = at
    customer = new Customer({ ...at, stsUrl: '', customer: { account: '', arn: '', accessKeyId, secretAccessKey } })
    await customer.s3.send(new CreateBucketCommand({ Bucket: bucket }))
    const environment = {
      ...{ INLET_OBJECT_STORE: 's3', INLET_S3_CREDENTIALS: 'own', INLET_S3_BUCKETS: `${bucket}/${prefix}` },
      ...{ INLET_S3_ENDPOINT: at.url, INLET_S3_REGION: at.region },
      ...{ AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
    }
    installation = await Installation.create({ environment })
    await installation.start('control', 'ingest', 'delivery')
  })
  afterAll(async () => {
    await installation?.[Symbol.asyncDispose]()
    await at?.stop()
  })

  const firstDestination = async () => (await installation.ok('GET', '/v1/destinations')).items.at(-1)

  test('the first start made a destination, and records get there, are read, backfilled and downloaded', async () => {
    const destination = await firstDestination()
    expect(destination).toMatchObject({ bucket, prefix, status: 'valid', role_arn: null })
    const { id, viewId } = await installation.endpoint({ bucket, destination_id: destination.id, view })
    const { body } = await installation.ingest(id, '{"n":1}\n{"n":"two"}\n{"n":3}\n')
    await installation.committed(id, [body.segment_seq])
    const markers = await customer.markers({ bucket, prefix }, id)
    expect(markers).toMatchObject([{ records: 3, views: [{ processed: 3, accepted: 2, dropped: 0, dlq: 1 }] }])
    await using typed = await customer.download(bucket, markers, 'views/numbers/v1')
    expect((await readWithDuckDb(typed.paths)).map(({ n }) => n)).toEqual(['1', '3'])

    const { files } = await installation.ok('GET', `/v1/views/${viewId}/dlq-files`)
    const download = await fetch(files[0].download_url)
    expect(download.status).toBe(200)
    expect(gunzipSync(Buffer.from(await download.arrayBuffer())).toString()).toContain('two')

    const { id: second } = await installation.ok('POST', `/v1/views/${viewId}/versions`)
    const definition = { columns: [{ name: 'n', type: 'VARCHAR', path: '$.n' }] }
    await installation.ok('PATCH', `/v1/views/${second}`, { definition })
    await installation.ok('POST', `/v1/views/${second}/publish`)
    const job = await installation.ok('POST', `/v1/views/${second}/backfill`, { endpoint_id: id })
    const ended = async () => (await installation.ok('GET', `/v1/jobs/${job.id}`)).finished_at !== null
    await until('the end of the backfill', ended, 60_000)
    expect(await installation.ok('GET', `/v1/jobs/${job.id}`)).toMatchObject({ status: 'succeeded' })
  })

  test('a validation passes each step, and leaves nothing behind', async () => {
    const made = await destination({ name: 'to validate', prefix: `${prefix}/validated` })
    const { status, steps } = await validated(made.id)
    expect(steps.map(({ step, outcome }) => `${step} ${outcome}`)).toEqual(
      ['allowlist', 'write', 'list', 'read', 'if_absent', 'multipart', 'delete'].map((step) => `${step} passed`),
    )
    expect(status).toBe('valid')
    expect(await customer.list(bucket, made.prefix)).toEqual([])
  })

  test('a validation names the setting that is wrong', async () => {
    const wrong = async (name: string, change: object) => {
      const { id } = await destination({ name, prefix: `${prefix}/${name}`, ...change })
      return (await validated(id)).steps.find(({ outcome }) => outcome === 'failed')
    }
    const outside = { step: 'allowlist', setting: 'allowlist', value: `${bucket}/elsewhere` }
    expect(await wrong('outside', { prefix: 'elsewhere' })).toMatchObject(outside)
    const region = kind.ignoresRegion === true ? undefined : { step: 'write', setting: 'region', value: at.region }
    if (region === undefined) expect(await wrong('region', { region: 'eu-wrong-1' })).toBeUndefined()
    else expect(await wrong('region', { region: 'eu-wrong-1' })).toMatchObject(region)
    const encrypted = await wrong('encrypted', { encryption: 'sse-s3' })
    const encryption = { step: 'write', setting: 'encryption', value: 'bucket-default' }
    if (kind.rejectsEncryption === true) expect(encrypted).toMatchObject(encryption)
    else expect(encrypted).toBeUndefined()
    expect(await wrong('checksums', { checksums: 'standard' })).toBeUndefined()
  })

  test('a large file is uploaded in parts, reads back unchanged, and can be deleted', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'inlet-large-'))
    const stores = storesWith({})
    try {
      const [source, copy] = [join(directory, 'large'), join(directory, 'copy')]
      {
        await using large = await open(source, 'w')
        for (let n = 0; n < 65; n += 1) await large.write(randomBytes(MiB))
      }
      const store = stores.open(target({}))
      await store.putFile(`${prefix}/large`, source, object)
      expect(await customer.head(bucket, `${prefix}/large`)).toMatchObject({ Metadata: { seq: '7' } })
      expect(await store.getFile(`${prefix}/large`, copy)).toBe(true)
      expect((await readFile(copy)).equals(await readFile(source))).toBe(true)
      await store.remove(`${prefix}/large`)
      expect(await store.head(`${prefix}/large`)).toBeUndefined()
    } finally {
      stores.close()
      await rm(directory, { recursive: true })
    }
  })

  test('keys that the store does not know, and buckets that are missing, are told apart', async () => {
    const store = (credentials: object, change: object) => storesWith(credentials).open(target(change))
    const put = (credentials: object, change = {}) => store(credentials, change).put(`${prefix}/a`, Buffer.from('x'), object)
    const reason = kind.hidesUnknownKeys === true ? 'put_denied' : 'credentials_refused'
    for (const wrong of [{ secretAccessKey: 'f'.repeat(64) }, { accessKeyId: `GK${'0'.repeat(24)}` }])
      expect(await failureOf(put(wrong))).toMatchObject({ reason })
    const missing = { bucket: 'inlet-nowhere', allowed_buckets: ['inlet-nowhere'] }
    expect(await failureOf(put({}, missing))).toMatchObject({ reason: 'bucket_missing' })
  })

  test('what the operator takes away is refused within seconds, and goes on once it is allowed again', async () => {
    const { id: destination_id } = await firstDestination()
    const { id } = await installation.endpoint({ bucket, destination_id })
    await allow()
    const reasons = async (): Promise<readonly string[]> => (await installation.ok('GET', `/v1/endpoints/${id}`)).status_reasons
    const { body } = await installation.ingest(id, '{"n":1}\n')
    await until('a reason', async () => (await reasons()).some((text) => text.includes('has not allowed this account')), 30_000)
    expect(await customer.list(bucket, `${prefix}/${id}`)).toEqual([])
    await allow(`${bucket}/${prefix}`)
    await installation.committed(id, [body.segment_seq])
    expect(await customer.markers({ bucket, prefix }, id)).toHaveLength(1)
  })

  async function destination(change: object) {
    const { suggested } = await installation.ok('GET', '/v1/object-store')
    return installation.ok('POST', '/v1/destinations', { bucket, ...suggested, ...change })
  }

  async function validated(id: string) {
    const { status, steps } = await installation.ok('POST', `/v1/destinations/${id}/validate`)
    return { status, steps: steps as readonly { readonly step: string; readonly outcome: string }[] }
  }

  async function allow(...allowed_buckets: readonly string[]) {
    const token = readFileSync(join(installation.directory, 'operator-token'), 'utf8').trim()
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const { items } = (await (await fetch(new URL('/v1/accounts', installation.apiUrl), { headers })).json()) as {
      items: [{ id: string }]
    }
    const body = JSON.stringify({ allowed_buckets })
    const changed = await fetch(new URL(`/v1/accounts/${items[0].id}`, installation.apiUrl), { method: 'PATCH', headers, body })
    expect(changed.status).toBe(200)
  }

  function storesWith(change: { readonly accessKeyId?: string; readonly secretAccessKey?: string }): S3Stores {
    const { accessKeyId, secretAccessKey, url: s3Endpoint } = at
    const credentials = { accessKeyId, secretAccessKey, ...change }
    return new S3Stores({ s3Endpoint, stsEndpoint: null, hasRoles: false, ...system, credentials })
  }

  function target(change: Partial<BucketTarget>): BucketTarget {
    return {
      ...{ id: 'd', bucket, prefix, region: at.region, role_arn: null, external_id: '' },
      ...{ encryption: 'bucket-default', kms_key_arn: null, checksums: 'none', path_style: true },
      allowed_buckets: [bucket],
      ...change,
    }
  }
})
