import { expect, test } from 'vitest'
import { bucketPolicy, trustPolicy } from './destination-policies.ts'

const role_arn = 'arn:aws-cn:iam::123456789012:role/ingest'

test('trusts nobody while the identity is unknown', () => {
  const [statement] = trustPolicy({ external_id: 'inlet-x' }, null).Statement
  expect(statement?.Principal.AWS).toContain('INLET_AWS_PRINCIPAL_ARN')
})

test('the bucket grants the role access to objects under the prefix and to the list of unfinished uploads', () => {
  const [objects, list, uploads, ...rest] = bucketPolicy({ bucket: 'lake', prefix: 'raw/events', role_arn }).Statement
  expect(objects).toMatchObject({ Principal: { AWS: role_arn }, Resource: 'arn:aws-cn:s3:::lake/raw/events/*' })
  expect(list).toMatchObject({ Resource: 'arn:aws-cn:s3:::lake', Condition: { StringLike: { 's3:prefix': 'raw/events/*' } } })
  expect(uploads).toMatchObject({ Action: 's3:ListBucketMultipartUploads', Resource: 'arn:aws-cn:s3:::lake' })
  expect(rest).toEqual([])
  expect(bucketPolicy({ bucket: 'lake', prefix: '', role_arn }).Statement[0]).toMatchObject({
    Resource: 'arn:aws-cn:s3:::lake/*',
  })
})
