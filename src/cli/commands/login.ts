import { buildCommand } from '@stricli/core'
import type { ListProfilesFlags, LoginFlags } from '../remote/login.ts'
import type { CliContext } from '../terminal/context.ts'
import { json, optional } from './parameters.ts'

const load = () => import('../remote/login.ts')

export const loginCommand = buildCommand<LoginFlags, [url?: string], CliContext>({
  loader: async () => (await load()).login,
  parameters: {
    flags: {
      keyFile: optional('file with the API key; - reads it from a pipe', 'FILE'),
    },
    positional: {
      kind: 'tuple',
      parameters: [
        { parse: String, optional: true, brief: 'address of control; http://127.0.0.1:8080 if not given', placeholder: 'URL' },
      ],
    },
  },
  docs: {
    brief: 'store an API key, for commands that call an Inlet',
    fullDescription: `Checks an API key and stores it, with the address of control, for the commands that call an Inlet over HTTP. Asks for the key on a terminal.

One machine can have several profiles: inlet --profile NAME login stores one, and inlet --profile NAME COMMAND uses it, as does INLET_PROFILE. Without a name, the profile of the last login is used. INLET_API_KEY, with INLET_URL, goes before all profiles.`,
  },
})

export const logoutCommand = buildCommand<Record<never, never>, [], CliContext>({
  loader: async () => (await load()).logout,
  parameters: {},
  docs: { brief: 'forget the API key of a profile' },
})

export const profilesCommand = buildCommand<ListProfilesFlags, [], CliContext>({
  loader: async () => (await load()).listProfiles,
  parameters: { flags: { json } },
  docs: { brief: 'list the profiles of this user' },
})
