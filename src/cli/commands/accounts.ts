import { buildCommand, buildRouteMap } from '@stricli/core'
import { UserError } from '#lib/user-error.ts'
import type { BucketFlags } from '../operator/account-buckets.ts'
import type { Limit, QuotaFlags } from '../operator/account-quotas.ts'
import type { NameFlags } from '../operator/accounts.ts'
import type { CliContext } from '../terminal/context.ts'
import type { JsonFlags } from '../terminal/print-json.ts'
import { json, oneArgument, optional, parseId, required } from './parameters.ts'

const accounts = () => import('../operator/accounts.ts')
const buckets = () => import('../operator/account-buckets.ts')
const quotas = () => import('../operator/account-quotas.ts')

const name = required('who the account is for', 'NAME')
const id = oneArgument('id of the account', 'ID', parseId)

const entries = (brief: string) =>
  ({ kind: 'parsed', parse: String, optional: true, variadic: true, brief, placeholder: 'BUCKET' }) as const

/** A quota or the weight: a number, or `default`. */
const limit = (brief: string) => optional(brief, 'N', parseLimit)

export const accountsCommands = buildRouteMap({
  routes: {
    create: buildCommand<NameFlags, [], CliContext>({
      loader: async () => (await accounts()).createAccount,
      parameters: { flags: { name, json } },
      docs: { brief: 'create an account and print its first key once' },
    }),
    list: buildCommand<JsonFlags, [], CliContext>({
      loader: async () => (await accounts()).listAllAccounts,
      parameters: { flags: { json } },
      docs: { brief: 'list accounts' },
    }),
    rename: buildCommand<NameFlags, [id: string], CliContext>({
      loader: async () => (await accounts()).renameAccount,
      parameters: { flags: { name, json }, positional: id },
      docs: { brief: 'give an account another name' },
    }),
    suspend: buildCommand<JsonFlags, [id: string], CliContext>({
      loader: async () => (await accounts()).suspendAccount,
      parameters: { flags: { json }, positional: id },
      docs: { brief: 'refuse the data of an account and changes to it, and keep what it has' },
    }),
    resume: buildCommand<JsonFlags, [id: string], CliContext>({
      loader: async () => (await accounts()).resumeAccount,
      parameters: { flags: { json }, positional: id },
      docs: { brief: 'end the suspension of an account' },
    }),
    quota: buildCommand<QuotaFlags & JsonFlags, [id: string], CliContext>({
      loader: async () => (await quotas()).setQuotas,
      parameters: {
        flags: {
          endpoints: limit('endpoints that are not deleted'),
          views: limit('views that are not archived'),
          viewVersions: limit('versions of all views, archived ones included'),
          apiKeys: limit('API keys that are not revoked'),
          bytesPerDay: limit('payload bytes that nodes accept in a UTC day'),
          recordsPerSecond: limit('records that nodes accept in each region'),
          weight: limit('share of the account where accounts compete for a node'),
          json,
        },
        positional: id,
      },
      docs: {
        brief: 'show the quotas of an account and their use, and change those that are given',
        fullDescription:
          'Shows the quotas of an account and how much of them is used. Changes those that are given first: to a number, or back with `default`. Nodes apply a change within seconds.',
      },
    }),
    buckets: buildCommand<BucketFlags, [id: string], CliContext>({
      loader: async () => (await buckets()).setBuckets,
      parameters: {
        flags: {
          allow: entries('bucket, or bucket and prefix such as lake/raw, that the account may use'),
          remove: entries('one that it may no longer use'),
          json,
        },
        positional: id,
      },
      docs: {
        brief: 'show the buckets that an account may use, and change them',
        fullDescription:
          'Shows the buckets that an account may use with INLET_S3_CREDENTIALS=own. Changes them first: --allow and --remove can be repeated. Nodes apply a change within seconds. What is below or above an entry of another account is refused.',
      },
    }),
  },
  docs: {
    brief: 'manage accounts',
    fullDescription: 'Manages the accounts of this installation, directly in the database: control does not have to run.',
  },
})

function parseLimit(text: string): Limit {
  if (text === 'default') return text
  if (!/^\d+$/.test(text)) throw new UserError('must be a whole number, or default')
  return Number(text)
}
