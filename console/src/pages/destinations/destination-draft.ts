import type { Destination, DestinationSettings, ObjectStore } from '../../api/destinations.ts'
import { placeOf } from './allowed-buckets.ts'

/** The form of a destination, as people fill it in. */
export type Draft = {
  readonly name: string
  readonly bucket: string
  readonly region: string
  readonly prefix: string
  readonly roleAccount: string
  /** Its name, or its whole ARN. */
  readonly roleName: string
  readonly encryption: Destination['encryption']
  readonly kmsKey: string
  readonly sendsChecksums: boolean
  readonly pathStyle: boolean
}

/** Returns the settings that fit the store, in the first bucket that the operator allows. */
export function emptyDraft({ suggested, allowed_buckets }: ObjectStore): Draft {
  const role = splitRoleArn(suggested.role_arn ?? '')
  return {
    name: '',
    ...placeOf(allowed_buckets?.[0] ?? ''),
    region: suggested.region ?? '',
    roleAccount: role.account,
    roleName: role.name === '' ? 'inlet' : role.name,
    encryption: suggested.encryption,
    kmsKey: '',
    sendsChecksums: suggested.checksums !== 'none',
    pathStyle: suggested.path_style,
  }
}

export function draftOf(destination: Destination): Draft {
  const { name, bucket, region, prefix, role_arn, encryption, kms_key_arn, checksums, path_style } = destination
  const role = splitRoleArn(role_arn ?? '')
  const rest = { encryption, kmsKey: kms_key_arn ?? '', sendsChecksums: checksums !== 'none', pathStyle: path_style }
  return { name, bucket, region, prefix, roleAccount: role.account, roleName: role.name, ...rest }
}

export function settingsOf(
  { kmsKey, sendsChecksums, pathStyle, roleAccount, roleName, ...rest }: Draft,
  { allowed_buckets }: Pick<ObjectStore, 'allowed_buckets'>,
): DestinationSettings {
  return {
    ...rest,
    role_arn: allowed_buckets !== null ? null : roleArn(rest.region, roleAccount.replaceAll(/[\s-]/g, ''), roleName.trim()),
    kms_key_arn: rest.encryption === 'kms' ? kmsKey.trim() : null,
    checksums: sendsChecksums ? 'standard' : 'none',
    path_style: pathStyle,
  }
}

/** Returns the ARN that a role will have. China and GovCloud are partitions of their own. */
function roleArn(region: string, account: string, name: string): string {
  if (name.startsWith('arn:')) return name
  const partition = region.startsWith('cn-') ? 'aws-cn' : region.startsWith('us-gov-') ? 'aws-us-gov' : 'aws'
  return `arn:${partition}:iam::${account}:role/${name}`
}

function splitRoleArn(arn: string): { readonly account: string; readonly name: string } {
  const [, account = '', name = ''] = /^arn:[^:]*:iam::([^:]*):role\/(.*)$/.exec(arn) ?? []
  return { account, name }
}
