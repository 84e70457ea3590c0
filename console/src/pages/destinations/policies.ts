/** Policies that the owner of a bucket pastes into AWS or a gateway. */
import type { Destination, ObjectStore } from '../../api/destinations.ts'

export function toJson(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

/** The statement that the policy of a key of another account needs, and that of the role. */
export function keyStatement({ role_arn }: Pick<Destination, 'role_arn'>) {
  return { Sid: 'InletUsesTheKey', Effect: 'Allow', Principal: { AWS: role_arn }, Action: keyActions, Resource: '*' }
}

const keyActions = ['kms:GenerateDataKey', 'kms:Decrypt']

/** The policy of the role: what the policy of the bucket says, without naming the role. */
export function rolePolicy({ bucket_policy, kms_key_arn }: Destination) {
  const statements = bucket_policy?.Statement.map(({ Principal, ...statement }) => statement) ?? []
  const key = { Sid: 'InletUsesTheKey', Effect: 'Allow', Action: keyActions, Resource: kms_key_arn }
  return { Version: '2012-10-17', Statement: kms_key_arn === null ? statements : [...statements, key] }
}

export const lifecycleRules = {
  Rules: [
    {
      ID: 'unfinished uploads',
      Status: 'Enabled',
      Filter: { Prefix: '' },
      AbortIncompleteMultipartUpload: { DaysAfterInitiation: 2 },
    },
  ],
}

const address = 'GATEWAY=https://…   # the address of the store'

/** Shell commands that create the role and let it use the bucket. They replace nothing. */
export function commandsOf(destination: Destination, { kind }: ObjectStore): string {
  const { role_arn, trust_policy, bucket } = destination
  const [, path = '/', name = ''] = /:role(\/(?:.*\/)?)([^/]*)$/.exec(role_arn ?? '') ?? []
  const aws = kind === 'gateway' ? 'aws --endpoint-url "$GATEWAY" iam' : 'aws iam'
  const create = [
    `${aws} create-role --role-name ${quote(name)}`,
    ...(path === '/' ? [] : [`--path ${quote(path)}`]),
    '--max-session-duration 7200',
    `--assume-role-policy-document ${quote(toJson(trust_policy))}`,
  ]
  const allow = [
    `${aws} put-role-policy --role-name ${quote(name)}`,
    `--policy-name ${quote(`inlet-${bucket}`)}`,
    `--policy-document ${quote(toJson(rolePolicy(destination)))}`,
  ]
  return [...(kind === 'gateway' ? [address] : []), create.join(' \\\n  '), allow.join(' \\\n  ')].join('\n\n')
}

/** A word of a shell. A prefix may have any character. */
export function quote(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
