import { command } from './command.ts'
import { json, optional } from './parameters.ts'

const load = () => import('../remote/login.ts')

export const loginCommand = command(
  'store an API key, for commands that call an Inlet',
  async () => (await load()).login,
  {
    flags: { keyFile: optional('file with the API key; - reads it from a pipe', 'FILE') },
    positional: {
      kind: 'tuple',
      parameters: [
        { parse: String, optional: true, brief: 'address of control; http://127.0.0.1:8080 if not given', placeholder: 'URL' },
      ],
    },
  },
  `Checks an API key and stores it, with the address of control, for the commands that call an Inlet over HTTP. Asks for the key on a terminal.

One machine can have several profiles: inlet --profile NAME login stores one, and inlet --profile NAME COMMAND uses it, as does INLET_PROFILE. Without a name, the profile of the last login is used. INLET_API_KEY, with INLET_URL, goes before all profiles.`,
)

export const logoutCommand = command('forget the API key of a profile', async () => (await load()).logout, {})

export const profilesCommand = command('list the profiles of this user', async () => (await load()).listProfiles, {
  flags: { json },
})
