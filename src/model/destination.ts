import { z } from 'zod'
import { Id } from './id.ts'
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
const Bucket = z
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
const Prefix = lineOfText(512)
  .regex(/^[^\\]*$/, 'must not contain backslashes')
  .meta({ description: 'without the parts . and ..; slashes at both ends are removed', examples: ['raw/events'] })
  .transform(normalizePrefix)
  .refine((prefix) => !prefix.split('/').some((part) => part === '.' || part === '..'), 'must not contain the parts . or ..')
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

export const CreateDestination = z.strictObject({
  name: Name,
  bucket: Bucket,
  region: Region,
  role_arn: RoleArn,
  prefix: Prefix.default(''),
  kms_key_arn: KmsKeyArn.nullable().default(null),
  path_style: z.boolean().default(false),
})
export type CreateDestination = z.infer<typeof CreateDestination>

export const ChangeDestination = z.strictObject({
  name: Name.optional(),
  bucket: Bucket.optional(),
  prefix: Prefix.optional(),
  region: Region.optional(),
  role_arn: RoleArn.optional(),
  kms_key_arn: KmsKeyArn.nullable().optional(),
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
  role_arn: z.string(),
  external_id: z.string(),
  kms_key_arn: z.string().nullable(),
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
  trust_policy: TrustPolicy.meta({ description: 'paste it as the trust policy of the role' }),
  bucket_policy: BucketPolicy.meta({ description: 'paste it as the policy of the bucket' }),
})
export type Destination = z.infer<typeof Destination>

export const DestinationWithCount = Destination.extend({ ref_count: z.int().min(0) })
export type DestinationWithCount = z.infer<typeof DestinationWithCount>

/** The part of a destination that nodes get: all that is needed to access the bucket. */
export const DestinationTarget = StoredDestination.pick({
  id: true,
  bucket: true,
  prefix: true,
  region: true,
  role_arn: true,
  external_id: true,
  kms_key_arn: true,
  path_style: true,
})
export type DestinationTarget = z.infer<typeof DestinationTarget>

/** A destination that the operator of a node names for a log without one. */
export const AssignableDestination = z.object({ account_id: Id, destination: DestinationTarget })
export type AssignableDestination = z.infer<typeof AssignableDestination>
