import { buildRouteMap } from '@stricli/core'
import { UserError } from '#lib/user-error.ts'
import type { Limit } from '../operator/account-quotas.ts'
import { command } from './command.ts'
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
    create: command('create an account and print its first key once', async () => (await accounts()).createAccount, {
      flags: { name, json },
    }),
    list: command('list accounts', async () => (await accounts()).listAllAccounts, { flags: { json } }),
    rename: command('give an account another name', async () => (await accounts()).renameAccount, {
      flags: { name, json },
      positional: id,
    }),
    suspend: command(
      'refuse the data of an account and changes to it, and keep what it has',
      async () => (await accounts()).suspendAccount,
      { flags: { json }, positional: id },
    ),
    resume: command('end the suspension of an account', async () => (await accounts()).resumeAccount, {
      flags: { json },
      positional: id,
    }),
    quota: command(
      'show the quotas of an account and their use, and change those that are given',
      async () => (await quotas()).setQuotas,
      {
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
      'Shows the quotas of an account and how much of them is used. Changes those that are given first: to a number, or back with `default`. Nodes apply a change within seconds.',
    ),
    buckets: command(
      'show the buckets that an account may use, and change them',
      async () => (await buckets()).setBuckets,
      {
        flags: {
          allow: entries('bucket, or bucket and prefix such as lake/raw, that the account may use'),
          remove: entries('one that it may no longer use'),
          json,
        },
        positional: id,
      },
      'Shows the buckets that an account may use with INLET_S3_CREDENTIALS=own. Changes them first: --allow and --remove can be repeated. Nodes apply a change within seconds. What is below or above an entry of another account is refused.',
    ),
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
