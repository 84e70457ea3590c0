import { buildCommand, buildRouteMap } from '@stricli/core'
import type { NameFlags } from '../accounts.ts'
import type { CliContext } from '../context.ts'
import { parseId } from './id.ts'

const accounts = () => import('../accounts.ts')

const name = { kind: 'parsed', parse: String, brief: 'who the account is for', placeholder: 'NAME' } as const
const id = { kind: 'tuple', parameters: [{ parse: parseId, brief: 'id of the account', placeholder: 'ID' }] } as const

export const accountsCommands = buildRouteMap({
  routes: {
    create: buildCommand<NameFlags, [], CliContext>({
      loader: async () => (await accounts()).createAccount,
      parameters: { flags: { name } },
      docs: { brief: 'create an account and print its first key once' },
    }),
    list: buildCommand<object, [], CliContext>({
      loader: async () => (await accounts()).listAllAccounts,
      parameters: {},
      docs: { brief: 'list accounts' },
    }),
    rename: buildCommand<NameFlags, [id: string], CliContext>({
      loader: async () => (await accounts()).renameAccount,
      parameters: { flags: { name }, positional: id },
      docs: { brief: 'give an account another name' },
    }),
    suspend: buildCommand<object, [id: string], CliContext>({
      loader: async () => (await accounts()).suspendAccount,
      parameters: { positional: id },
      docs: { brief: 'refuse the data of an account and changes to it, and keep what it has' },
    }),
    resume: buildCommand<object, [id: string], CliContext>({
      loader: async () => (await accounts()).resumeAccount,
      parameters: { positional: id },
      docs: { brief: 'end the suspension of an account' },
    }),
  },
  docs: {
    brief: 'manage accounts',
    fullDescription: 'Manages the accounts of this installation, directly in the database: control does not have to run.',
  },
})
