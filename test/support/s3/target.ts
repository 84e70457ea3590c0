/** A double with a bucket and a role, stores that use it, and the destination that names them. */
import { expect } from 'vitest'
import { system } from '#lib/system.ts'
import { newId } from '#model/id.ts'
import type { BucketTarget, ObjectStore } from '#objects/object-store.ts'
import { S3Stores, type S3StoresOptions } from '#objects/s3.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { doubleCredentials, type Role, S3Double } from './double.ts'

export type DoubleBucket = AsyncDisposable & {
  readonly double: S3Double
  readonly stores: S3Stores
  readonly store: ObjectStore
  readonly target: BucketTarget & { readonly role_arn: string }
  readonly role: Role
}

export async function newDoubleBucket(
  change: Partial<BucketTarget & { readonly role_arn: string }> = {},
  options: Partial<S3StoresOptions> = {},
): Promise<DoubleBucket> {
  const double = await S3Double.start()
  const target = {
    id: newId(),
    bucket: 'lake',
    region: 'eu-central-1',
    role_arn: 'arn:aws:iam::222222222222:role/ingest',
    external_id: 'inlet-external',
    encryption: 'sse-s3',
    kms_key_arn: null,
    checksums: 'standard',
    allowed_buckets: [],
    path_style: true,
    ...change,
  } satisfies BucketTarget
  double.addBucket(target.bucket, target.region)
  const role = double.addRole(target.role_arn, { externalId: target.external_id })
  const stores = storesOf(double, options)
  return {
    ...{ double, stores, store: stores.open(target), target, role },
    async [Symbol.asyncDispose]() {
      stores.close()
      await double[Symbol.asyncDispose]()
    },
  }
}

export function storesOf({ url }: S3Double, options: Partial<S3StoresOptions> = {}): S3Stores {
  return new S3Stores({ s3Endpoint: url, stsEndpoint: url, ...system, credentials: doubleCredentials, ...options })
}

/** Returns the failure of the operation, which must be a store error. */
export async function failureOf(work: Promise<unknown>): Promise<ObjectStoreError> {
  const error = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(error).toBeInstanceOf(ObjectStoreError)
  return error as ObjectStoreError
}
