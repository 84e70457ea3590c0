/** Opens the copy store that the configuration names. */
import type { System } from '#lib/system.ts'
import { DirectoryStores } from '#objects/directory.ts'
import type { BucketTarget, ObjectStore } from '#objects/object-store.ts'
import { KnownDirectory } from './known-directory.ts'

export type CopyStoreConfig = {
  readonly copyUrl:
    | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string }
    | { readonly kind: 'directory'; readonly path: string }
  readonly copyS3Endpoint: string | null
  readonly copyRegion: string
  readonly copyPathStyle: string
  readonly copyAccessKeyId: string | null
  readonly copySecretAccessKey: string | null
  /** If not set, a directory is used as it is. */
  readonly paths?: { readonly copyStore: string }
}

export type OpenedCopyStore = {
  readonly store: ObjectStore
  readonly prefix: string
  /** Closes idle connections. Requests in flight fail. */
  close(): void
}

export async function openCopyStore(config: CopyStoreConfig, system: System): Promise<OpenedCopyStore> {
  const { copyUrl, copyRegion: region, paths } = config
  if (copyUrl.kind === 'directory') {
    const { path: root } = copyUrl
    const known = paths && new KnownDirectory(system, root, paths.copyStore)
    const stores = new DirectoryStores({ ...system, root, ...(known && { verifyRoot: () => known.verify() }) })
    return { store: stores.open(targetOf('copies', region)), prefix: '', close: () => undefined }
  }
  // Imported on demand: the AWS SDK is large.
  const { S3Stores } = await import('#objects/s3.ts')
  const { copyAccessKeyId: accessKeyId, copySecretAccessKey: secretAccessKey } = config
  const stores = new S3Stores({
    ...{ ...system, s3Endpoint: config.copyS3Endpoint, stsEndpoint: null, hasRoles: false },
    ...(accessKeyId === null || secretAccessKey === null ? {} : { credentials: { accessKeyId, secretAccessKey } }),
  })
  const target = { ...targetOf(copyUrl.bucket, region), path_style: config.copyPathStyle === 'true' }
  return { store: stores.open(target), prefix: copyUrl.prefix, close: () => stores.close() }
}

function targetOf(bucket: string, region: string): BucketTarget {
  return {
    ...{ id: 'copies', bucket, region, role_arn: null, external_id: 'copies', path_style: true },
    ...{ encryption: 'bucket-default', kms_key_arn: null, checksums: 'standard', allowed_buckets: [bucket] },
  }
}
