import { z } from 'zod'
import { Checksums, Encryption } from './destination.ts'

/** Kind of store for the objects of destinations. `gateway` speaks S3 and is not AWS. */
export const StoreKind = z.enum(['aws', 'gateway', 'directory'])
export type StoreKind = z.infer<typeof StoreKind>

/** Properties that decide which settings a destination needs. */
export type StoreTraits = { readonly kind: StoreKind; readonly has_roles: boolean; readonly region: string | null }

/** Whether the operator says which buckets an account may use. */
export function hasAllowedBuckets({ kind, has_roles }: Pick<StoreTraits, 'kind' | 'has_roles'>): boolean {
  return kind !== 'directory' && !has_roles
}

type StoreConfig = {
  readonly objectStore: 'directory' | 's3'
  readonly s3Endpoint: string | null
  readonly s3Credentials: 'roles' | 'own'
  readonly s3Region: string
}

export function storeTraitsOf({ objectStore, s3Endpoint, s3Credentials, s3Region: region }: StoreConfig): StoreTraits {
  if (objectStore === 'directory') return { kind: 'directory', has_roles: false, region: null }
  return { kind: s3Endpoint === null ? 'aws' : 'gateway', has_roles: s3Credentials === 'roles', region }
}

/** Settings to know before creating a destination. */
export const ObjectStoreSettings = z.object({
  kind: StoreKind.meta({
    description:
      '`aws`: buckets of S3; `gateway`: those of the S3 gateway of the operator; `directory`: directories of this installation, without roles',
  }),
  has_roles: z.boolean().meta({
    description:
      'whether Inlet assumes the role of each destination; if not, the credentials of the installation open the buckets, or there are none',
  }),
  allowed_buckets: z.array(z.string()).nullable().meta({
    description:
      'what the operator allows the account: buckets, each with or without a prefix (`lake/raw`); null where roles decide, or the store is a directory',
  }),
  external_id: z.string().meta({ description: 'what the trust policies of the roles of this account must demand' }),
  principal_arn: z
    .string()
    .nullable()
    .meta({ description: 'the AWS identity that assumes the roles; null if the operator has not set INLET_AWS_PRINCIPAL_ARN' }),
  suggested: z
    .object({
      region: z.string().nullable(),
      role_arn: z.string().nullable(),
      encryption: Encryption,
      checksums: Checksums,
      path_style: z.boolean(),
    })
    .meta({ description: 'settings that fit the store; null: the owner of the bucket knows' }),
})
export type ObjectStoreSettings = z.infer<typeof ObjectStoreSettings>

const strict = { encryption: 'sse-s3', checksums: 'standard' } as const
/** Defaults that every gateway accepts. Many reject the headers for encryption and checksums. */
const plain = { encryption: 'bucket-default', checksums: 'none' } as const

/** The form of a destination demands a role, except with credentials of the installation. Directories ignore it. */
const noRole = 'arn:aws:iam::000000000000:role/none'

/** Returns the settings of a destination that fit the store. */
export function suggestedSettings({ kind, has_roles, region }: StoreTraits): ObjectStoreSettings['suggested'] {
  switch (kind) {
    case 'aws':
      return { region: has_roles ? null : region, role_arn: null, ...strict, path_style: false }
    case 'gateway':
      return { region, role_arn: null, ...(has_roles ? strict : plain), path_style: true }
    case 'directory':
      return { region: 'local', role_arn: noRole, ...strict, path_style: false }
  }
}
