import { buildCommand } from '@stricli/core'
import type { CliContext } from '../context.ts'
import type { SignInLinkFlags } from '../sign-in-link.ts'
import { parseId } from './id.ts'
import { json } from './json.ts'

export const signInLinkCommand = buildCommand<SignInLinkFlags, [], CliContext>({
  loader: async () => (await import('../sign-in-link.ts')).createSignInLink,
  parameters: {
    flags: {
      email: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'who signs in with it; somebody new if not set',
        placeholder: 'ADDRESS',
      },
      account: {
        kind: 'parsed',
        parse: parseId,
        optional: true,
        brief: 'id of the account to own; the first account if not set',
        placeholder: 'ID',
      },
      json,
    },
  },
  docs: {
    brief: 'print a one-time link into the console',
    fullDescription:
      'Prints a link that signs somebody in to the console once: a new owner, or with --email a person who forgot the password. Works directly in the database: control does not have to run.',
  },
})
