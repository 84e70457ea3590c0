import { randomBytes } from 'node:crypto'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { s3Errors } from '../../test/support/s3/answers.ts'
import { failureOf, newDoubleBucket } from '../../test/support/s3/target.ts'

const MiB = 1024 * 1024
const options = { contentType: 'application/gzip', metadata: { seq: '7' } }
let directory = ''
const file = (name: string) => join(directory, name)

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-s3-'))
  // Larger than the threshold for parts. All parts differ.
  await using large = await open(file('large'), 'w')
  for (let part = 0; part < 9; part += 1) await large.write(randomBytes(MiB), 0, MiB, part * 8 * MiB)
  await large.truncate(65 * MiB + 1)
})
afterAll(() => rm(directory, { recursive: true }))

describe('a large file', { timeout: 30_000 }, () => {
  test('is uploaded in parts, each with its checksum, with the KMS key, and reads back intact', async () => {
    const kms_key_arn = 'arn:aws:kms:eu-central-1:222222222222:key/1234abcd'
    await using at = await newDoubleBucket({ encryption: 'kms', kms_key_arn })
    await at.store.putFile('large', file('large'), options)
    expect(at.double.count('UploadPart')).toBe(9)
    for (const { operation, headers } of at.double.calls) {
      if (operation === 'UploadPart') expect(headers).toHaveProperty('x-amz-checksum-crc32')
    }
    const stored = at.double.object('lake', 'large')
    expect(stored?.headers).toMatchObject({
      'x-amz-meta-seq': '7',
      'content-type': 'application/gzip',
      'x-amz-server-side-encryption-aws-kms-key-id': kms_key_arn,
    })
    expect(await at.store.getFile('large', file('copy'))).toBe(true)
    await using copy = await open(file('copy'))
    await using large = await open(file('large'))
    expect((await copy.readFile()).equals(await large.readFile())).toBe(true)
  })

  test('leaves no parts if one of them is rejected', async () => {
    await using at = await newDoubleBucket()
    at.double.fault = ({ operation, query }) =>
      operation === 'UploadPart' && query.get('partNumber') === '4' ? s3Errors.accessDenied : undefined
    expect(await failureOf(at.store.putFile('large', file('large'), options))).toMatchObject({ reason: 'put_denied' })
    expect(at.double.buckets.get('lake')?.uploads.size).toBe(0)
    expect(at.double.object('lake', 'large')).toBeUndefined()
    // The other parts are not all sent.
    expect(at.double.count('UploadPart')).toBeLessThan(9)
  })

  test('leaves no parts after an abort, and sends nothing after it', async () => {
    await using at = await newDoubleBucket()
    const abort = new AbortController()
    const reason = new Error('stop')
    at.double.fault = ({ operation, query }) => {
      if (operation !== 'UploadPart' || query.get('partNumber') !== '3') return undefined
      abort.abort(reason)
      return 'silence'
    }
    await expect(at.store.putFile('large', file('large'), { ...options, signal: abort.signal })).rejects.toBe(reason)
    expect(at.double.buckets.get('lake')?.uploads.size).toBe(0)
    expect(at.double.calls.at(-1)?.operation).toBe('AbortMultipartUpload')
  })

  test('aborts the upload of a crashed process before it starts its own', async () => {
    await using at = await newDoubleBucket()
    const left = { key: 'large', headers: {}, parts: new Map() }
    at.double.buckets.get('lake')?.uploads.set('dead', left)
    at.double.buckets.get('lake')?.uploads.set('other', { ...left, key: 'large-other' })
    await at.store.putFile('large', file('large'), options)
    expect([...(at.double.buckets.get('lake')?.uploads.keys() ?? [])]).toEqual(['other'])
  })

  test('is uploaded even if the role may not list uploads', async () => {
    await using at = await newDoubleBucket()
    at.role.denied.add('ListMultipartUploads')
    await at.store.putFile('large', file('large'), options)
    expect(at.double.object('lake', 'large')).toBeDefined()
  })

  test('fails if its completion returns 200 with an error', async () => {
    await using at = await newDoubleBucket()
    at.double.fault = ({ operation }) => (operation === 'CompleteMultipartUpload' ? 'error in a 200' : undefined)
    expect(await failureOf(at.store.putFile('large', file('large'), options))).toMatchObject({
      reason: 'unavailable',
      code: 'InternalError',
    })
    expect(at.double.buckets.get('lake')?.uploads.size).toBe(0)
  })
})

describe('a trial of uploads in parts', () => {
  test('leaves neither object nor parts, with the KMS key of the destination', async () => {
    await using at = await newDoubleBucket({
      encryption: 'kms',
      kms_key_arn: 'arn:aws:kms:eu-central-1:222222222222:key/1234abcd',
    })
    await at.store.tryParts?.('trial', options)
    expect(at.double.buckets.get('lake')).toMatchObject({ objects: new Map(), uploads: new Map() })
    const begun = at.double.calls.find(({ operation }) => operation === 'CreateMultipartUpload')
    expect(begun?.headers).toMatchObject({ 'x-amz-server-side-encryption': 'aws:kms' })
  })

  test('abandons the upload if the part is denied', async () => {
    await using at = await newDoubleBucket()
    at.role.denied.add('UploadPart')
    expect(await failureOf(at.store.tryParts?.('trial', options) ?? Promise.resolve())).toMatchObject({ reason: 'put_denied' })
    expect(at.double.buckets.get('lake')?.uploads.size).toBe(0)
  })

  test('fails if the upload cannot be abandoned', async () => {
    await using at = await newDoubleBucket()
    at.role.denied.add('AbortMultipartUpload')
    expect(await failureOf(at.store.tryParts?.('trial', options) ?? Promise.resolve())).toMatchObject({
      reason: 'abort_denied',
      message: expect.stringContaining('s3:AbortMultipartUpload'),
    })
  })
})
