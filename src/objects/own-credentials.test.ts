import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { objectStoreSuite } from '../../test/support/object-store-suite.ts'
import { doubleCredentials, S3Double } from '../../test/support/s3/double.ts'
import { failureOf, storesOf } from '../../test/support/s3/target.ts'
import { s3Limits } from './limits.ts'
import type { BucketTarget } from './object-store.ts'

const object = { contentType: 'text/plain', metadata: { seq: '7' } }
const body = Buffer.from('hello')
const mine: BucketTarget = {
  id: 'd',
  bucket: 'lake',
  prefix: 'raw/mine',
  region: 'eu-central-1',
  role_arn: null,
  external_id: 'inlet-mine',
  encryption: 'bucket-default',
  kms_key_arn: null,
  checksums: 'none',
  allowed_buckets: ['lake/raw/mine'],
  path_style: true,
}

/** A store without roles that rejects headers for encryption and checksums, and what an account may use in it. */
async function opened(...allowed_buckets: readonly string[]) {
  const double = await S3Double.start()
  const own = double.withoutRoles()
  const { objects } = double.addBucket('lake')
  const stores = storesOf(double, { hasRoles: false, clock: new ManualClock(Date.now()) })
  return {
    ...{ double, own, objects, stores, store: stores.open({ ...mine, prefix: '', allowed_buckets }) },
    async [Symbol.asyncDispose]() {
      stores.close()
      await double[Symbol.asyncDispose]()
    },
  }
}

objectStoreSuite('S3 with own credentials', () => opened('lake'))

test('the credentials of this installation sign, and no role is assumed', async () => {
  await using at = await opened()
  const store = at.stores.open(mine)
  await store.put('raw/mine/a', body, object)
  expect(Buffer.from((await store.get('raw/mine/a')) ?? [])).toEqual(body)
  expect(at.double.calls.map(({ operation, key }) => `${operation} ${key}`)).toEqual([
    'PutObject raw/mine/a',
    'GetObject raw/mine/a',
  ])
})

const others: readonly (readonly [string, string, string])[] = [
  ['another bucket', 'pond', 'raw/mine/a'],
  ['the prefix above', 'lake', 'raw/a'],
  ['the whole bucket', 'lake', 'a'],
  ['a prefix that begins the same', 'lake', 'raw/mine2/a'],
  ['the prefix itself', 'lake', 'raw/mine'],
  ['a path that leaves the prefix', 'lake', 'raw/mine/../other/a'],
  ['a path that stays on the spot', 'lake', 'raw/mine/./a'],
  ['a path that begins with a slash', 'lake', '/raw/mine/a'],
  ['nothing', 'lake', ''],
]
test.each(others)('an entry of the allowlist does not open %s: %s %s', async (_, bucket, key) => {
  await using at = await opened()
  at.double.addBucket('pond')
  const store = at.stores.open({ ...mine, bucket })
  const works: readonly Promise<unknown>[] = [
    ...[store.put(key, body, object), store.putFile(key, '/dev/null', object), store.remove(key)],
    ...[store.get(key), store.head(key), store.getFile(key, '/dev/null'), store.presign(key, 60)],
    ...[Array.fromAsync(store.list(key)), store.tryParts?.(key, object) ?? Promise.resolve()],
  ]
  for (const work of works) {
    const failure = await failureOf(work)
    expect(failure).toMatchObject({ reason: 'not_allowed', code: 'NotAllowed' })
    expect(failure.message).toContain(`has not allowed this account to use ${bucket}/raw/mine`)
  }
  expect(at.double.calls).toEqual([])
})

test('an account without an allowlist uses nothing', async () => {
  await using at = await opened()
  const store = at.stores.open({ ...mine, allowed_buckets: [] })
  expect(await failureOf(store.put('raw/mine/a', body, object))).toMatchObject({ reason: 'not_allowed' })
  expect(at.double.calls).toEqual([])
})

test('files below an earlier prefix can be read as long as the account may use it', async () => {
  await using at = await opened()
  await at.stores.open(mine).put('raw/mine/a', body, object)
  const moved = at.stores.open({ ...mine, prefix: 'raw/new', allowed_buckets: ['lake/raw/mine', 'lake/raw/new'] })
  expect(Buffer.from((await moved.get('raw/mine/a')) ?? [])).toEqual(body)
})

test('keys that the store does not know, that may not write, and a missing bucket are told apart', async () => {
  await using at = await opened()
  const missing = at.stores.open({ ...mine, bucket: 'nowhere', allowed_buckets: ['nowhere'] })
  expect(await failureOf(missing.put('raw/mine/a', body, object))).toMatchObject({ reason: 'bucket_missing' })
  at.own.denied.add('PutObject')
  const denied = await failureOf(at.stores.open(mine).put('raw/mine/a', body, object))
  expect(denied).toMatchObject({ reason: 'put_denied' })
  expect(denied.message).not.toContain('role')
  for (const credentials of [
    { accessKeyId: 'AKIAFOREIGN', secretAccessKey: 'x' },
    { ...doubleCredentials, secretAccessKey: 'x' },
  ]) {
    const stores = storesOf(at.double, { hasRoles: false, credentials })
    expect(await failureOf(stores.open(mine).put('raw/mine/a', body, object))).toMatchObject({ reason: 'credentials_refused' })
    stores.close()
  }
})

test.each([
  [{ encryption: 'sse-s3' }, 'encryption_refused', 'set encryption to bucket-default'],
  [{ checksums: 'standard' }, 'checksums_refused', 'set checksums to none'],
] as const)('a store that rejects headers says so: %j', async (change, reason, advice) => {
  await using at = await opened()
  const failure = await failureOf(at.stores.open({ ...mine, ...change }).put('raw/mine/a', body, object))
  expect(failure).toMatchObject({ reason, message: expect.stringContaining(advice) })
  // Nothing gets better by asking again.
  expect(at.double.count('PutObject')).toBe(1)
})

test('a large file is uploaded in parts without headers that other stores reject', async () => {
  await using at = await opened()
  const directory = await mkdtemp(join(tmpdir(), 'inlet-parts-'))
  try {
    const path = join(directory, 'large')
    {
      await using large = await open(path, 'w')
      await large.truncate(s3Limits.multipartThresholdBytes + MiB)
    }
    await at.stores.open(mine).putFile('raw/mine/large', path, object)
    expect(at.objects.get('raw/mine/large')?.body.length).toBe(s3Limits.multipartThresholdBytes + MiB)
    await at.stores.open(mine).tryParts?.('raw/mine/parts', object)
  } finally {
    await rm(directory, { recursive: true })
  }
})

test('a store that speaks no TLS is told from one that is down', async () => {
  await using at = await opened()
  const stores = storesOf(at.double, { hasRoles: false, s3Endpoint: at.double.url.replace('http:', 'https:') })
  const failure = await failureOf(stores.open(mine).put('raw/mine/a', body, object))
  expect(failure).toMatchObject({ reason: 'unreachable', code: 'EPROTO' })
  expect(failure.message).toContain('INLET_S3_ENDPOINT must begin with http://')
  stores.close()
})
