import { describe, expect, test } from 'vitest'
import type { ObjectStore } from '../../api/destinations.ts'
import { type Draft, emptyDraft, settingsOf } from './destination-draft.ts'

const strict = { role_arn: null, encryption: 'sse-s3', checksums: 'standard', path_style: false } as const
const aws: ObjectStore = {
  kind: 'aws',
  has_roles: true,
  allowed_buckets: null,
  external_id: 'inlet-x',
  principal_arn: null,
  suggested: { region: null, ...strict },
}
const draft = { ...emptyDraft(aws), name: 'lake', bucket: 'lake', region: 'eu-central-1', roleAccount: '123456789012' }
const settings = (change: Partial<Draft>) => settingsOf({ ...draft, ...change }, aws)

describe('the settings of a draft', () => {
  test('have the ARN that the role will have, in the partition of the region', () => {
    const arnIn = (region: string) => settings({ region }).role_arn
    expect(arnIn('eu-central-1')).toBe('arn:aws:iam::123456789012:role/inlet')
    expect(arnIn('cn-north-1')).toBe('arn:aws-cn:iam::123456789012:role/inlet')
    expect(arnIn('us-gov-west-1')).toBe('arn:aws-us-gov:iam::123456789012:role/inlet')
  })

  test('take an account as AWS shows it, and a whole ARN in place of a name', () => {
    expect(settings({ roleAccount: '1234-5678-9012' }).role_arn).toBe('arn:aws:iam::123456789012:role/inlet')
    const arn = 'arn:aws:iam::210987654321:role/teams/data/inlet'
    expect(settings({ roleName: ` ${arn} ` }).role_arn).toBe(arn)
  })

  test('have a key only if it encrypts', () => {
    expect(settings({ kmsKey: 'arn:1' })).toMatchObject({ encryption: 'sse-s3', kms_key_arn: null })
    expect(settings({ encryption: 'kms', kmsKey: ' arn:1 ' })).toMatchObject({ encryption: 'kms', kms_key_arn: 'arn:1' })
  })
})

test('an empty draft has the settings that fit the store', () => {
  const role_arn = 'arn:aws:iam::000000000000:role/none'
  const directory: ObjectStore = {
    ...aws,
    kind: 'directory',
    has_roles: false,
    suggested: { region: 'local', ...strict, role_arn },
  }
  expect(settingsOf(emptyDraft(directory), directory)).toMatchObject({ region: 'local', role_arn })
})

test('an empty draft begins in what the operator allows, and needs no role', () => {
  const suggested = { ...strict, region: 'garage', encryption: 'bucket-default', checksums: 'none', path_style: true } as const
  const own: ObjectStore = { ...aws, kind: 'gateway', has_roles: false, allowed_buckets: ['lake/raw/a', 'pond'], suggested }
  const place = { bucket: 'lake', prefix: 'raw/a', kms_key_arn: null }
  expect(settingsOf(emptyDraft(own), own)).toMatchObject({ ...suggested, ...place, role_arn: null })
})
