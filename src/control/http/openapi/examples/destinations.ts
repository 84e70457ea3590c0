import { bucketPolicy, trustPolicy } from '../../../resources/destination-policies.ts'
import { at, type Examples, ids, page } from './shared.ts'

const target = {
  name: 'lake',
  bucket: 'example-lake',
  prefix: 'raw/events',
  region: 'eu-central-1',
  role_arn: 'arn:aws:iam::123456789012:role/ingest',
  encryption: 'sse-s3',
  kms_key_arn: null,
  checksums: 'standard',
  path_style: false,
}

const destination = {
  id: ids.destination,
  ...target,
  external_id: 'inlet-0aZ9bY8cX7dW6eV5fU4gT3hS2iR1jQ0k',
  status: 'valid',
  validated_at: at,
  last_error: null,
  created_at: at,
  updated_at: at,
  trust_policy: trustPolicy({ external_id: 'inlet-0aZ9bY8cX7dW6eV5fU4gT3hS2iR1jQ0k' }, 'arn:aws:iam::210987654321:role/inlet'),
  bucket_policy: bucketPolicy(target),
}

const pending = { ...destination, status: 'pending', validated_at: null }

const passed = { outcome: 'passed', message: null, effect: null, setting: null, value: null }

const steps = [
  ...['assume_role', 'write', 'list'].map((step) => ({ step, ...passed })),
  {
    step: 'read',
    outcome: 'warning',
    message:
      'reading in bucket example-lake failed (AccessDenied): the role arn:aws:iam::123456789012:role/ingest must be allowed s3:GetObject on arn:aws:s3:::example-lake/raw/events/*; compare with bucket_policy of the destination',
    effect: 'backfills, re-drives and downloads of dead letters fail, and nothing checks that files exist before a commit',
    setting: 'bucket_policy',
    value: null,
  },
  ...['multipart', 'delete'].map((step) => ({ step, ...passed })),
]

const objectStore = {
  kind: 'aws',
  has_roles: true,
  allowed_buckets: null,
  external_id: destination.external_id,
  principal_arn: 'arn:aws:iam::210987654321:role/inlet',
  suggested: { region: null, role_arn: null, encryption: 'sse-s3', checksums: 'standard', path_style: false },
}

export const destinationsExamples: Examples = {
  createDestination: {
    request: {
      name: target.name,
      bucket: target.bucket,
      prefix: target.prefix,
      region: target.region,
      role_arn: target.role_arn,
    },
    response: pending,
  },
  listDestinations: { response: page({ ...destination, ref_count: 1 }) },
  getDestination: { response: { ...destination, ref_count: 1 } },
  changeDestination: { request: { prefix: 'raw/events' }, response: pending },
  deleteDestination: {},
  validateDestination: { response: { ...destination, steps } },
  getObjectStore: { response: objectStore },
}
