/** A double with a bucket and a role, stores that use it, and the destination that names them. */
import { expect } from 'vitest'
import { openCopyStore } from '#copies/open-store.ts'
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

/** A double without roles that knows checksums, and its bucket for copies. */
export async function storeWithoutRoles() {
  const double = await S3Double.start()
  const role = double.withoutRoles({ knowsHeaders: true })
  const bucket = double.addBucket('copies', 'us-east-1')
  const copyUrl = { kind: 's3', bucket: 'copies', prefix: 'in/let' } as const
  const { accessKeyId: copyAccessKeyId, secretAccessKey: copySecretAccessKey } = doubleCredentials
  const settings = { copyS3Endpoint: double.url, copyRegion: 'us-east-1', copyPathStyle: 'true' }
  const { store, close } = await openCopyStore({ copyUrl, ...settings, copyAccessKeyId, copySecretAccessKey }, system)
  return {
    ...{ double, role, bucket, store },
    async [Symbol.asyncDispose]() {
      close()
      await double[Symbol.asyncDispose]()
    },
  }
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
