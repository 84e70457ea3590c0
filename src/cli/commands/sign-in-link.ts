import { command } from './command.ts'
import { json, optional, parseId } from './parameters.ts'

export const signInLinkCommand = command(
  'print a one-time link into the console',
  async () => (await import('../operator/sign-in-link.ts')).createSignInLink,
  {
    flags: {
      email: optional('who signs in with it; somebody new if not set', 'ADDRESS'),
      account: optional('id of the account to own; the first account if not set', 'ID', parseId),
      json,
    },
  },
  'Prints a link that signs somebody in to the console once: a new owner, or with --email a person who forgot the password. Works directly in the database: control does not have to run.',
)
