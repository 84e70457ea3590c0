import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { s3Errors } from '../../test/support/s3/answers.ts'
import { doubleCredentials, type Fault, type Operation } from '../../test/support/s3/double.ts'
import { failureOf, newDoubleBucket, storesOf } from '../../test/support/s3/target.ts'
import { until } from '../../test/support/until.ts'
import { s3Limits } from './limits.ts'
import type { BucketTarget } from './object-store.ts'
import { S3Stores } from './s3.ts'
import { sessionName } from './session-name.ts'

const options = { contentType: 'application/gzip', metadata: { seq: '7', 'endpoint-id': 'e' } }
const kms_key_arn = 'arn:aws:kms:eu-central-1:222222222222:key/1234abcd'
const underKms = {
  'x-amz-server-side-encryption': 'aws:kms',
  'x-amz-server-side-encryption-aws-kms-key-id': kms_key_arn,
  'x-amz-server-side-encryption-bucket-key-enabled': 'true',
}
let directory = ''
const file = (name: string) => join(directory, name)

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-s3-'))
  await writeFile(file('small'), 'small')
})
afterAll(() => rm(directory, { recursive: true }))

/** Returns a fault for the first `count` requests of an operation. */
const first = (count: number, operation: Operation, fault: Fault) => {
  let left = count
  return (call: { readonly operation: Operation }) => (call.operation === operation && left-- > 0 ? fault : undefined)
}

describe('a PUT request', () => {
  test('has length, signed SHA-256, checksum, type, metadata, and SSE-S3', async () => {
    await using at = await newDoubleBucket()
    await at.store.put('k', Buffer.from('small'), options)
    await at.store.putFile('f', file('small'), options)
    const sha256 = createHash('sha256').update('small').digest()
    for (const key of ['k', 'f']) {
      const { headers } = at.double.calls.find((call) => call.key === key) ?? {}
      expect(headers).toMatchObject({
        'content-length': '5',
        'content-type': 'application/gzip',
        'x-amz-content-sha256': sha256.toString('hex'),
        'x-amz-checksum-sha256': sha256.toString('base64'),
        'x-amz-meta-seq': '7',
        'x-amz-meta-endpoint-id': 'e',
        'x-amz-server-side-encryption': 'AES256',
      })
      // Older gateways do not support trailing checksums, and waiting for 100-continue costs a connection.
      for (const name of ['transfer-encoding', 'content-encoding', 'x-amz-trailer', 'expect'])
        expect(headers).not.toHaveProperty(name)
      expect(at.double.object('lake', key)?.headers).toMatchObject({ 'x-amz-meta-seq': '7', 'content-type': 'application/gzip' })
    }
  })

  test('has the KMS key of the destination', async () => {
    await using at = await newDoubleBucket({ encryption: 'kms', kms_key_arn })
    await at.store.put('k', Buffer.from('x'), options)
    expect(at.double.object('lake', 'k')?.headers).toMatchObject(underKms)
  })

  test('is rejected if the file does not match its SHA-256', async () => {
    await using at = await newDoubleBucket()
    const sha256 = createHash('sha256').update('other').digest('hex')
    expect(await failureOf(at.store.putFile('k', file('small'), { ...options, sha256 }))).toMatchObject({ reason: 'damaged' })
    expect(at.double.object('lake', 'k')).toBeUndefined()
  })

  test('reuses connections', async () => {
    await using at = await newDoubleBucket()
    for (let n = 0; n < 20; n += 1) await at.store.putFile(`k${n}`, file('small'), options)
    expect(at.double.connections).toBeLessThanOrEqual(2)
  })
})

describe('transient failures', { timeout: 30_000 }, () => {
  const passing: readonly (readonly [string, Fault])[] = [
    ['500', s3Errors.internalError],
    ['503 SlowDown', s3Errors.slowDown],
    ['a reset in the middle of the body', 'reset'],
    ['a lost response', 'answer lost'],
    ['silence', 'silence'],
    ['a crawl', 'crawl'],
    ['an error in a 200', 'error in a 200'],
  ]

  test.each(passing)('%s: puts of bytes and files succeed after retries', async (_, fault) => {
    await using at = await newDoubleBucket({}, { idleTimeoutMs: 600 })
    at.double.fault = first(1, 'PutObject', fault)
    await at.store.put('k', Buffer.alloc(100_000), options)
    at.double.fault = first(2, 'PutObject', fault)
    await at.store.putFile('f', file('small'), options)
    expect(at.double.object('lake', 'k')?.body.length).toBe(100_000)
    expect(at.double.object('lake', 'f')?.body.toString()).toBe('small')
  })

  test('a stalled upload is retried', async () => {
    await using at = await newDoubleBucket({}, { idleTimeoutMs: 1_500 })
    await writeFile(file('longer'), Buffer.alloc(8 * 1024 * 1024, 'x'))
    at.double.fault = first(1, 'PutObject', 'stall')
    await at.store.putFile('f', file('longer'), options)
    expect(at.double.object('lake', 'f')?.body.length).toBe(8 * 1024 * 1024)
    expect(at.double.count('PutObject')).toBeGreaterThan(1)
  })

  test.each(['reset', 'silence'] as const)('%s: an object is read completely after a retry', async (fault) => {
    await using at = await newDoubleBucket({}, { idleTimeoutMs: 600 })
    await at.store.put('k', Buffer.alloc(100_000, 'x'), options)
    at.double.fault = first(1, 'GetObject', fault)
    expect((await at.store.get('k'))?.length).toBe(100_000)
    at.double.fault = first(1, 'GetObject', fault)
    expect(await at.store.getFile('k', file('got'))).toBe(true)
  })

  test('a lasting failure is thrown after a few attempts', async () => {
    await using at = await newDoubleBucket()
    at.double.fault = ({ operation }) => (operation === 'PutObject' ? s3Errors.slowDown : undefined)
    expect(await failureOf(at.store.putFile('f', file('small'), options))).toMatchObject({
      reason: 'throttled',
      code: 'SlowDown',
    })
    expect(at.double.count('PutObject')).toBe(3)
  })

  test('a put with one attempt is sent once', async () => {
    await using at = await newDoubleBucket()
    at.double.fault = first(1, 'PutObject', s3Errors.internalError)
    const failure = await failureOf(at.store.put('k', Buffer.from('small'), { ...options, attempts: 1 }))
    expect(failure).toMatchObject({ reason: 'unavailable' })
    expect(at.double.count('PutObject')).toBe(1)
  })
})

test('the bucket is part of the host name unless the destination has path_style', async () => {
  await using at = await newDoubleBucket()
  const stores = storesOf(at.double, {
    s3Endpoint: at.double.url.replace('127.0.0.1', 'gateway.test'),
    lookup: (_host, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
  })
  for (const [path_style, host] of [
    [false, 'lake.gateway.test'],
    [true, 'gateway.test'],
  ] as const) {
    await stores.open({ ...at.target, path_style }).put('a/k', Buffer.from(host), options)
    expect(at.double.calls.at(-1)?.headers.host).toMatch(new RegExp(`^${host}:`))
    expect(at.double.object('lake', 'a/k')?.body.toString()).toBe(host)
  }
  stores.close()
})

test('a gateway at an IP address is always used in path style', async () => {
  await using at = await newDoubleBucket({ path_style: false })
  await at.store.put('k', Buffer.from('x'), options)
  expect(at.double.object('lake', 'k')?.body.toString()).toBe('x')
})

describe('list', () => {
  test('reads all pages', async () => {
    await using at = await newDoubleBucket()
    for (let n = 0; n < 7; n += 1) await at.store.put(`p/${n}`, Buffer.from('x'), options)
    at.double.keysPerPage = 3
    expect((await Array.fromAsync(at.store.list('p/'))).map(({ key }) => key)).toEqual([
      'p/0',
      'p/1',
      'p/2',
      'p/3',
      'p/4',
      'p/5',
      'p/6',
    ])
    expect(at.double.count('ListObjectsV2')).toBe(3)
  })

  test('knows the SHA-256 of an object, or the one that its metadata names, or none', async () => {
    await using at = await newDoubleBucket()
    const sha256 = createHash('sha256').update('small').digest('hex')
    const named = { ...options, metadata: { sha256: 'ab'.repeat(32) } }
    await at.store.put('verified', Buffer.from('small'), named)
    expect(await at.store.head('verified')).toEqual({ bytes: 5, sha256 })
    expect(at.double.calls.at(-1)?.headers['x-amz-checksum-mode']).toBe('ENABLED')
    await writeFile(file('large'), Buffer.alloc(s3Limits.multipartThresholdBytes + 1))
    await at.store.putFile('in parts', file('large'), named)
    expect(await at.store.head('in parts')).toEqual({ bytes: s3Limits.multipartThresholdBytes + 1, sha256: 'ab'.repeat(32) })

    await using plain = await newDoubleBucket({ checksums: 'none' })
    await plain.store.put('named', Buffer.from('small'), named)
    expect(await plain.store.head('named')).toEqual({ bytes: 5, sha256: 'ab'.repeat(32) })
    await plain.store.put('unknown', Buffer.from('small'), { ...options, metadata: { sha256: 'not one' } })
    expect(await plain.store.head('unknown')).toEqual({ bytes: 5, sha256: undefined })
    // Without the right to decrypt, S3 denies a HEAD that asks for the checksum, and allows one that does not.
    await using kms = await newDoubleBucket({ encryption: 'kms', kms_key_arn })
    await kms.store.put('k', Buffer.from('small'), named)
    await kms.store.head('k')
    for (const double of [plain.double, kms.double])
      expect(double.calls.at(-1)?.headers).not.toHaveProperty('x-amz-checksum-mode')
  })

  test('decides whether an object exists if the store denies access to missing ones', async () => {
    await using at = await newDoubleBucket()
    await at.store.put('there', Buffer.from('x'), options)
    at.double.fault = ({ operation }) => (operation === 'GetObject' ? s3Errors.accessDenied : undefined)
    expect(await at.store.get('missing')).toBeUndefined()
    expect(await at.store.get('the')).toBeUndefined()
    expect(await failureOf(at.store.get('there'))).toMatchObject({ reason: 'get_denied' })
    at.double.fault = ({ operation }) => (operation === 'HeadObject' ? s3Errors.accessDenied : undefined)
    expect(await at.store.head('missing')).toBeUndefined()
    expect(await failureOf(at.store.head('there'))).toMatchObject({ reason: 'get_denied', code: 'HTTP 403' })
    at.double.fault = () => undefined
    expect(await at.store.head('there')).toMatchObject({ bytes: 1 })
    at.role.denied.add('GetObject').add('HeadObject').add('ListObjectsV2')
    expect(await failureOf(at.store.get('missing'))).toMatchObject({ reason: 'get_denied', step: 'get' })
  })

  test('get rejects large objects', async () => {
    await using at = await newDoubleBucket()
    await at.store.put('there', Buffer.alloc(s3Limits.getBytesMax), options)
    expect((await at.store.get('there'))?.length).toBe(s3Limits.getBytesMax)
    await at.store.put('there', Buffer.alloc(s3Limits.getBytesMax + 1), options)
    expect(await failureOf(at.store.get('there'))).toMatchObject({
      reason: 'refused',
      message: expect.stringContaining('delete it'),
    })
  })
})

describe('an assumed role', () => {
  test('is assumed once per destination, with a session name that contains account and endpoint', async () => {
    await using at = await newDoubleBucket()
    const [account_id, endpoint_id] = ['11111111-2222-3333-4444-555555555555', 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee']
    const target: BucketTarget = { ...at.target, session: sessionName({ account_id, endpoint_id }) }
    await Promise.all([1, 2, 3, 4].map((n) => at.stores.open(target).put(`k${n}`, Buffer.from('x'), options)))
    await at.stores.open(target).put('k5', Buffer.from('x'), options)
    const calls = at.double.calls.filter(({ operation }) => operation === 'AssumeRole')
    expect(calls).toHaveLength(1)
    expect(Object.fromEntries(calls[0]?.form ?? [])).toMatchObject({
      RoleArn: at.target.role_arn,
      ExternalId: 'inlet-external',
      RoleSessionName: 'inlet-555555555555-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee',
      DurationSeconds: '3600',
    })
    expect(calls[0]?.signed).toMatchObject({ region: 'eu-central-1', service: 'sts' })
  })

  test('is assumed again after any change, and for another endpoint', async () => {
    await using at = await newDoubleBucket()
    at.double.addRole('arn:aws:iam::222222222222:role/other', { externalId: 'inlet-external' })
    at.double.addBucket('west', 'eu-west-1')
    const changes = [
      {},
      { role_arn: 'arn:aws:iam::222222222222:role/other' },
      { region: 'eu-west-1', bucket: 'west' },
      { session: 'other' },
    ]
    for (const change of changes) await at.stores.open({ ...at.target, ...change }).put('k', Buffer.from('x'), options)
    expect(at.double.count('AssumeRole')).toBe(changes.length)
    expect(
      await failureOf(at.stores.open({ ...at.target, external_id: 'not mine' }).put('k', Buffer.from('x'), options)),
    ).toMatchObject({ reason: 'assume_role_denied' })
  })

  test('stays cached after its client was evicted', async () => {
    const clientsMax = 3
    await using at = await newDoubleBucket({}, { clientsMax })
    const put = (session: string) => at.stores.open({ ...at.target, session }).put('k', Buffer.from('x'), options)
    const sessions = Array.from({ length: clientsMax + 1 }, (_, n) => `session-${n}`)
    for (const session of sessions) await put(session)
    for (const session of sessions) await put(session)
    expect(at.double.count('AssumeRole')).toBe(sessions.length)
  })

  test('is assumed again for a store opened as fresh', async () => {
    await using at = await newDoubleBucket()
    await at.store.put('k', Buffer.from('x'), options)
    const fresh = at.stores.open(at.target, { fresh: true })
    await fresh.put('k', Buffer.from('x'), options)
    await fresh.remove('k')
    expect(at.double.count('AssumeRole')).toBe(2)
  })

  test('is assumed again at once if the store rejects its session', async () => {
    await using at = await newDoubleBucket()
    await at.store.put('k', Buffer.from('x'), options)
    // The role was deleted and created again, so sessions of the old one are invalid.
    at.double.addRole(at.target.role_arn, { externalId: 'inlet-external' })
    await at.store.put('k', Buffer.from('y'), options)
    expect(at.double.count('AssumeRole')).toBe(2)
    expect(at.double.object('lake', 'k')?.body.toString()).toBe('y')
  })

  test('fails while it is deleted', async () => {
    await using at = await newDoubleBucket()
    await at.store.put('k', Buffer.from('x'), options)
    at.double.roles.delete(at.target.role_arn)
    expect(await failureOf(at.store.put('k', Buffer.from('y'), options))).toMatchObject({
      ...{ reason: 'assume_role_denied', step: 'assume_role', code: 'AccessDenied' },
    })
    at.double.addRole(at.target.role_arn, { externalId: 'inlet-external' })
    await until('the role to be tried again', () =>
      at.store.put('k', Buffer.from('z'), options).then(
        () => true,
        () => false,
      ),
    )
    expect(at.double.object('lake', 'k')?.body.toString()).toBe('z')
  })
})

describe('a wrong clock', () => {
  test.each([-2, 2])('by %i hours is corrected from the responses of S3 and STS', async (hours) => {
    await using at = await newDoubleBucket()
    at.double.aheadMs = hours * 3_600_000
    await at.store.put('k', Buffer.from('x'), options)
    await at.store.putFile('f', file('small'), options)
    const link = await at.stores.open(at.target).presign('k', 3_600)
    expect(await (await fetch(link)).text()).toBe('x')
    // The same for a client that has not sent any request to S3 yet.
    const own = storesOf(at.double)
    expect((await fetch(await own.open(at.target).presign('k', 3_600))).status).toBe(200)
    own.close()
    // No put was retried: the offset was known from STS.
    expect(at.double.count('PutObject')).toBe(2)
  })

  test('is reported if it cannot be corrected', async () => {
    await using at = await newDoubleBucket()
    at.double.fault = ({ operation }) =>
      operation === 'PutObject' ? s3Errors.requestTimeTooSkewed('20261120T080000Z', Date.now()) : undefined
    expect(await failureOf(at.store.put('k', Buffer.from('x'), options))).toMatchObject({ reason: 'clock_skew' })
  })
})

describe('a signed URL', () => {
  test('downloads this object and no other', async () => {
    await using at = await newDoubleBucket()
    await at.store.put("dlq/it's ü.gz", Buffer.from('rows'), options)
    const link = await at.store.presign("dlq/it's ü.gz", 3_600)
    expect(await (await fetch(link)).text()).toBe('rows')
    expect((await fetch(link.replace('dlq', 'qld'))).status).toBe(403)
    expect((await fetch(link, { method: 'DELETE' })).status).toBe(403)
    expect(new URL(link).searchParams.get('X-Amz-Expires')).toBe('3600')
  })

  test('is valid for its hour: the session that signs it lasts longer, even a cached one', async () => {
    await using at = await newDoubleBucket()
    Object.assign(at.role, { maxSeconds: 43_200 })
    await at.store.put('k', Buffer.from('x'), options)
    const links = [await at.store.presign('k', 3_600), await at.store.presign('k', 3_600)]
    expect(at.double.calls.filter(({ form }) => form.get('DurationSeconds') === '7200')).toHaveLength(1)
    at.double.aheadMs = 3_590_000
    for (const link of links) expect((await fetch(link)).status).toBe(200)
    at.double.aheadMs = 3_610_000
    for (const link of links) expect((await fetch(link)).status).toBe(403)
  })

  const aws = (at: Parameters<typeof storesOf>[0]) => storesOf(at, { s3Endpoint: null })

  test.each([
    [{ path_style: false }, 'https://lake.s3.eu-central-1.amazonaws.com/a/k?'],
    [{ path_style: true }, 'https://s3.eu-central-1.amazonaws.com/lake/a/k?'],
    // A certificate of AWS covers one label: the SDK takes path style by itself.
    [{ path_style: false, bucket: 'lake.of.data' }, 'https://s3.eu-central-1.amazonaws.com/lake.of.data/a/k?'],
    [{ path_style: false, region: 'cn-north-1' }, 'https://lake.s3.cn-north-1.amazonaws.com.cn/a/k?'],
    [{ path_style: false, region: 'us-gov-west-1' }, 'https://lake.s3.us-gov-west-1.amazonaws.com/a/k?'],
  ])('has the host of the bucket: %j', async (change, expected) => {
    await using at = await newDoubleBucket(change)
    const stores = aws(at.double)
    const link = await stores.open(at.target).presign('a/k', 3_600)
    expect(link.slice(0, expected.length)).toBe(expected)
    expect(link).toContain(`%2F${at.target.region}%2Fs3%2Faws4_request`)
    stores.close()
  })
})

describe('without the URL of a gateway', () => {
  test('uses STS of the region, and reports unknown hosts as unreachable', async () => {
    const lookedUpHosts: string[] = []
    const stores = new S3Stores({
      ...{ s3Endpoint: null, stsEndpoint: null, credentials: doubleCredentials, ...system },
      lookup: (host, _options, callback) => {
        lookedUpHosts.push(host)
        callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' }), '')
      },
    })
    await using at = await newDoubleBucket()
    for (const region of ['eu-central-1', 'cn-north-1', 'us-gov-west-1']) {
      const failure = await failureOf(stores.open({ ...at.target, region }).put('k', Buffer.from('x'), options))
      expect(failure).toMatchObject({ reason: 'unreachable', step: 'assume_role', code: 'ENOTFOUND' })
    }
    expect([...new Set(lookedUpHosts)]).toEqual([
      ...['sts.eu-central-1.amazonaws.com', 'sts.cn-north-1.amazonaws.com.cn', 'sts.us-gov-west-1.amazonaws.com'],
    ])
    stores.close()
  })
})
