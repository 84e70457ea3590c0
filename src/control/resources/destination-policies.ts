import type { BucketPolicy, StoredDestination, TrustPolicy } from '#model/destination.ts'

/** AWS rejects a policy with this principal, which is better than trusting the wrong one. */
const unknownPrincipal = 'set INLET_AWS_PRINCIPAL_ARN to the ARN of the AWS identity that Inlet runs as'

const version = '2012-10-17'

/** Returns the trust policy of the role, ready to paste: it lets Inlet assume the role for this account only. */
export function trustPolicy({ external_id }: Pick<StoredDestination, 'external_id'>, principalArn: string | null): TrustPolicy {
  return {
    Version: version,
    Statement: [
      {
        Sid: 'InletAssumesThisRole',
        Effect: 'Allow',
        Principal: { AWS: principalArn ?? unknownPrincipal },
        Action: 'sts:AssumeRole',
        Condition: { StringEquals: { 'sts:ExternalId': external_id } },
      },
    ],
  }
}

/** Returns the bucket policy, ready to paste: it allows every operation that the role needs. */
export function bucketPolicy({
  bucket,
  prefix,
  role_arn,
}: Pick<StoredDestination, 'bucket' | 'prefix'> & { readonly role_arn: string }): BucketPolicy {
  const [, partition = 'aws'] = role_arn.split(':')
  const bucketArn = `arn:${partition}:s3:::${bucket}`
  const under = prefix === '' ? '*' : `${prefix}/*`
  return {
    Version: version,
    Statement: [
      {
        Sid: 'InletWritesObjects',
        Effect: 'Allow',
        Principal: { AWS: role_arn },
        Action: ['s3:PutObject', 's3:GetObject', 's3:DeleteObject', 's3:AbortMultipartUpload'],
        Resource: `${bucketArn}/${under}`,
      },
      {
        Sid: 'InletListsObjects',
        Effect: 'Allow',
        Principal: { AWS: role_arn },
        Action: 's3:ListBucket',
        Resource: bucketArn,
        Condition: { StringLike: { 's3:prefix': under } },
      },
      {
        // AWS has no condition by prefix for this action. It reveals the keys of uploads, not their content.
        Sid: 'InletFindsUnfinishedUploads',
        Effect: 'Allow',
        Principal: { AWS: role_arn },
        Action: 's3:ListBucketMultipartUploads',
        Resource: bucketArn,
      },
    ],
  }
}
