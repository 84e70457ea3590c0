import { z } from 'zod'
import { Id } from './id.ts'
import { objectKeyLimits } from './limits.ts'
import { lineOfText, properName } from './text.ts'
import { Timestamp } from './timestamp.ts'

export const DestinationStatus = z.enum(['pending', 'valid'])
export type DestinationStatus = z.infer<typeof DestinationStatus>

/** Removes leading and trailing slashes: `/a//b/` becomes `a//b`. The empty string is the root of the bucket. */
export function normalizePrefix(prefix: string): string {
  return prefix.replace(/^\/+/, '').replace(/(?<!\/)\/+$/, '')
}

const reservedPrefixes = ['xn--', 'sthree-', 'amzn-s3-demo-'] as const
const reservedSuffixes = ['-s3alias', '--ol-s3', '.mrap', '--x-s3', '--table-s3'] as const

const Name = properName(128).meta({ examples: ['lake'] })
/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html */
export const Bucket = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
    'must be 3 to 63 lowercase letters, digits, dots and hyphens, with a letter or digit at both ends',
  )
  .refine((name) => !name.includes('..'), 'must not contain two dots in a row')
  .refine((name) => !/^\d+(\.\d+){3}$/.test(name), 'must not have the form of an IP address')
  .refine(
    (name) => !reservedPrefixes.some((prefix) => name.startsWith(prefix)),
    `must not start with ${reservedPrefixes.join(', ')}: S3 reserves these`,
  )
  .refine(
    (name) => !reservedSuffixes.some((suffix) => name.endsWith(suffix)),
    `must not end with ${reservedSuffixes.join(', ')}: S3 reserves these`,
  )
  .meta({
    description: `without two dots in a row, not of the form of an IP address, not starting with ${reservedPrefixes.join(', ')} and not ending with ${reservedSuffixes.join(', ')}`,
    examples: ['example-lake'],
  })
export const Prefix = lineOfText(512)
  .regex(/^[^\\]*$/, 'must not contain backslashes')
  .meta({ description: 'without the parts . and ..; slashes at both ends are removed', examples: ['raw/events'] })
  .transform(normalizePrefix)
  .refine((prefix) => !prefix.split('/').some((part) => part === '.' || part === '..'), 'must not contain the parts . or ..')
  .refine(
    (prefix) => Buffer.byteLength(prefix) <= objectKeyLimits.prefixBytesMax,
    `must be at most ${objectKeyLimits.prefixBytesMax} bytes in UTF-8: S3 allows keys of ${objectKeyLimits.keyBytesMax} bytes, and Inlet appends the rest`,
  )
const Region = z
  .string()
  .regex(/^[a-z0-9-]{1,32}$/, 'must be the region of the bucket')
  .meta({ examples: ['eu-central-1'] })
const RoleArn = z
  .string()
  .max(2048)
  .regex(/^arn:[a-z-]+:iam::[0-9a-zA-Z-]*:role\/[\w+=,.@/-]+$/, 'must be the ARN of an IAM role')
  .meta({ examples: ['arn:aws:iam::123456789012:role/ingest'] })
const KmsKeyArn = z
  .string()
  .max(2048)
  .regex(/^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]*:(key|alias)\/[\w/:-]+$/, 'must be the ARN of a KMS key')
  .meta({ examples: ['arn:aws:kms:eu-central-1:123456789012:key/4f8c1f0e-6a53-4c0e-9d3b-0000000000f2'] })

/** How objects are encrypted. */
export const Encryption = z.enum(['sse-s3', 'kms', 'bucket-default'])
export type Encryption = z.infer<typeof Encryption>

/** Checksums that Inlet adds to puts beside the signature, which covers their SHA-256 anyway. */
export const Checksums = z.enum(['standard', 'none'])
export type Checksums = z.infer<typeof Checksums>

const role_arn = RoleArn.nullable().meta({
  description: 'the role that Inlet assumes; required except with `INLET_S3_CREDENTIALS=own`, where it is not used',
})
const encryption = Encryption.meta({
  description:
    '`sse-s3`: the keys of the store; `kms`: the key of `kms_key_arn`, which implies it; `bucket-default`: as the bucket does by itself, no header is sent',
})
const checksums = Checksums.meta({
  description: '`standard`: puts carry a SHA-256, parts of large files a CRC32; `none`: for stores that reject them',
})

export const CreateDestination = z.strictObject({
  name: Name,
  bucket: Bucket,
  region: Region,
  role_arn: role_arn.default(null),
  prefix: Prefix.default(''),
  encryption: encryption.optional(),
  kms_key_arn: KmsKeyArn.nullable().default(null),
  checksums: checksums.default('standard'),
  path_style: z.boolean().default(false),
})
export type CreateDestination = z.infer<typeof CreateDestination>

export const ChangeDestination = z.strictObject({
  name: Name.optional(),
  bucket: Bucket.optional(),
  prefix: Prefix.optional(),
  region: Region.optional(),
  role_arn: role_arn.optional(),
  encryption: encryption.optional(),
  kms_key_arn: KmsKeyArn.nullable().optional(),
  checksums: checksums.optional(),
  path_style: z.boolean().optional(),
})
export type ChangeDestination = z.infer<typeof ChangeDestination>

/** A destination as it is stored. */
export const StoredDestination = z.object({
  id: Id,
  name: z.string(),
  bucket: z.string(),
  prefix: z.string(),
  region: z.string(),
  role_arn: z.string().nullable(),
  external_id: z.string(),
  encryption: Encryption,
  kms_key_arn: z.string().nullable(),
  checksums: Checksums,
  path_style: z.boolean(),
  status: DestinationStatus,
  validated_at: Timestamp.nullable(),
  last_error: z.string().nullable(),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type StoredDestination = z.infer<typeof StoredDestination>

const Statement = z.object({ Sid: z.string(), Effect: z.literal('Allow'), Principal: z.object({ AWS: z.string() }) })

export const TrustPolicy = z.object({
  Version: z.literal('2012-10-17'),
  Statement: z.array(
    Statement.extend({
      Action: z.literal('sts:AssumeRole'),
      Condition: z.object({ StringEquals: z.object({ 'sts:ExternalId': z.string() }) }),
    }),
  ),
})
export type TrustPolicy = z.infer<typeof TrustPolicy>

export const BucketPolicy = z.object({
  Version: z.literal('2012-10-17'),
  Statement: z.array(
    Statement.extend({
      Action: z.union([z.string(), z.array(z.string())]),
      Resource: z.string(),
      Condition: z.object({ StringLike: z.object({ 's3:prefix': z.string() }) }).optional(),
    }),
  ),
})
export type BucketPolicy = z.infer<typeof BucketPolicy>

export const Destination = StoredDestination.extend({
  trust_policy: TrustPolicy.nullable().meta({ description: 'paste it as the trust policy of the role; null without a role' }),
  bucket_policy: BucketPolicy.nullable().meta({ description: 'paste it as the policy of the bucket; null without a role' }),
})
export type Destination = z.infer<typeof Destination>

export const DestinationWithCount = Destination.extend({ ref_count: z.int().min(0) })
export type DestinationWithCount = z.infer<typeof DestinationWithCount>

/** The part of a destination that nodes get: all that is needed to access the bucket, and what its account may use. */
export const DestinationTarget = StoredDestination.pick({
  id: true,
  bucket: true,
  prefix: true,
  region: true,
  role_arn: true,
  external_id: true,
  encryption: true,
  kms_key_arn: true,
  checksums: true,
  path_style: true,
}).extend({ allowed_buckets: z.array(z.string()) })
export type DestinationTarget = z.infer<typeof DestinationTarget>

/** A destination that the operator of a node names for a log without one. */
export const AssignableDestination = z.object({ account_id: Id, destination: DestinationTarget })
export type AssignableDestination = z.infer<typeof AssignableDestination>
