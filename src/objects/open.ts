/** Opens the object stores that the configuration names. */
import type { System } from '#lib/system.ts'
import { DirectoryStores } from './directory.ts'
import type { ObjectStores } from './object-store.ts'
import type { SignedUrls } from './signed-urls.ts'

/** The part of the configuration that decides where objects are stored. */
export type ObjectStoresConfig = {
  readonly objectStore: 'directory' | 's3'
  readonly paths: { readonly buckets: string }
  readonly bucketsGroup: number | null
  readonly s3Endpoint: string | null
  readonly s3Credentials: 'roles' | 'own'
  readonly stsEndpoint: string | null
  readonly awsPrincipalArn: string | null
}

export type OpenObjectStoresOptions = System & {
  /** Signs download URLs if buckets are local directories; S3 signs its own. */
  readonly signedUrls?: SignedUrls
}

export type OpenedObjectStores = {
  readonly stores: ObjectStores
  /** Set if buckets are local directories, whose files the control process can serve. */
  readonly local: DirectoryStores | undefined
  /** Closes idle connections. Requests in flight fail. */
  close(): void
}

export async function openObjectStores(
  config: ObjectStoresConfig,
  { signedUrls, ...system }: OpenObjectStoresOptions,
): Promise<OpenedObjectStores> {
  if (config.objectStore === 'directory') {
    const { paths, bucketsGroup: groupId } = config
    const local = new DirectoryStores({
      ...system,
      root: paths.buckets,
      groupId,
      ...(signedUrls === undefined ? {} : { signedUrls }),
    })
    await local.prepare()
    return { stores: local, local, close: () => undefined }
  }
  // Imported on demand: the AWS SDK is large.
  const { S3Stores } = await import('./s3.ts')
  const { s3Credentials, s3Endpoint, stsEndpoint, awsPrincipalArn: principalArn } = config
  const s3 = new S3Stores({ s3Endpoint, hasRoles: s3Credentials === 'roles', stsEndpoint, principalArn, ...system })
  return { stores: s3, local: undefined, close: () => s3.close() }
}
