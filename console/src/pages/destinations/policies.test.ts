import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import type { Destination, ObjectStore } from '../../api/destinations.ts'
import { commandsOf, rolePolicy } from './policies.ts'

const role_arn = 'arn:aws:iam::123456789012:role/teams/data/inlet'
const destination: Destination = {
  id: '4f8c1f0e-6a53-4c0e-9d3b-0000000000d1',
  name: 'lake',
  bucket: 'lake',
  prefix: "o'clock",
  region: 'eu-central-1',
  role_arn,
  external_id: 'inlet-x',
  kms_key_arn: 'arn:aws:kms:eu-central-1:123456789012:key/1',
  encryption: 'kms',
  checksums: 'standard',
  path_style: false,
  status: 'pending',
  validated_at: null,
  last_error: null,
  created_at: '2026-11-20T08:15:30.123Z',
  updated_at: '2026-11-20T08:15:30.123Z',
  ref_count: 0,
  trust_policy: {
    Version: '2012-10-17',
    Statement: [
      {
        Sid: 'InletAssumesThisRole',
        Effect: 'Allow',
        Principal: { AWS: 'arn:aws:iam::210987654321:role/inlet' },
        Action: 'sts:AssumeRole',
        Condition: { StringEquals: { 'sts:ExternalId': 'inlet-x' } },
      },
    ],
  },
  bucket_policy: {
    Version: '2012-10-17',
    Statement: [
      {
        Sid: 'InletWritesObjects',
        Effect: 'Allow',
        Principal: { AWS: role_arn },
        Action: ['s3:PutObject'],
        Resource: "arn:aws:s3:::lake/o'clock/*",
      },
    ],
  },
}
const store = (kind: ObjectStore['kind']): ObjectStore => ({
  kind,
  has_roles: true,
  allowed_buckets: null,
  external_id: 'inlet-x',
  principal_arn: null,
  suggested: { region: null, role_arn: null, encryption: 'sse-s3', checksums: 'standard', path_style: false },
})

/** Returns the arguments with which a shell calls `aws`. */
function calls(commands: string): string[][] {
  const script = `aws() { printf '%s\\0' "$@"; printf '\\0'; }\n${commands}`
  const output = execFileSync('sh', ['-c', script], { encoding: 'utf8' })
  return output
    .split('\0\0')
    .filter((call) => call !== '')
    .map((call) => call.split('\0'))
}

test('the commands create the role with its path and its trust, and give it the policy', () => {
  const [create = [], allow = []] = calls(commandsOf(destination, store('aws')))
  expect(create.slice(0, 6)).toEqual(['iam', 'create-role', '--role-name', 'inlet', '--path', '/teams/data/'])
  expect(JSON.parse(create.at(-1) ?? '')).toEqual(destination.trust_policy)
  expect(allow.slice(0, 4)).toEqual(['iam', 'put-role-policy', '--role-name', 'inlet'])
  expect(JSON.parse(allow.at(-1) ?? '')).toEqual(rolePolicy(destination))
})

test('the commands for a gateway name its address', () => {
  const [create = []] = calls(commandsOf(destination, store('gateway')))
  expect(create.slice(0, 4)).toEqual(['--endpoint-url', 'https://…', 'iam', 'create-role'])
})

test('the policy of a role names no principal, and allows the key', () => {
  const { Statement } = rolePolicy(destination)
  expect(Statement.map((statement) => Object.keys(statement))).toEqual([
    ['Sid', 'Effect', 'Action', 'Resource'],
    ['Sid', 'Effect', 'Action', 'Resource'],
  ])
  expect(rolePolicy({ ...destination, kms_key_arn: null }).Statement).toHaveLength(1)
})
