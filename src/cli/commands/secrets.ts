import { buildRouteMap } from '@stricli/core'
import { command } from './command.ts'
import { flag, json, oneArgument, optional } from './parameters.ts'
import { callCommand, listCommand } from './resource.ts'

const secrets = () => import('../resources/secrets.ts')

const flags = {
  file: optional('file with the value; - reads it from a pipe', 'FILE'),
  base64: flag('the file has base64 of the bytes, not text'),
  json,
} as const
const yes = flag('do not ask')
const aliases = { f: 'file' } as const

const fromFile =
  'The value comes from a file or a pipe, never from an argument, which other users of the machine can see. A line break at its end is left out. Without a file, Inlet makes a value at random and returns it, once.'

export const secretsCommands = buildRouteMap({
  routes: {
    list: listCommand('listSecrets', 'list secrets, without their values', {
      noun: 'secrets',
      columns: { NAME: 'name', 'USED BY': ['used_by', 'list'], CREATED: 'created_at', ROTATED: 'rotated_at', ID: 'id' },
    }),
    create: command(
      'create a secret that views can hash with',
      async () => (await secrets()).createSecret,
      { flags, aliases, positional: oneArgument('name that views call it by', 'NAME') },
      `Creates a secret of the account, for hmac_sha256('NAME', …) in views. ${fromFile}\n\nExample: inlet secrets create email_key -f - < email.key`,
    ),
    rotate: command(
      'replace the value of a secret',
      async () => (await secrets()).rotateSecret,
      { flags: { ...flags, yes }, aliases, positional: oneArgument('name or id of the secret', 'SECRET') },
      `Replaces the value: nodes hash with the new one from the next segment on, and so do backfills. Equal texts have different hashes before and after. The old value is not kept, so the command asks first: scripts answer with --yes. ${fromFile}`,
    ),
    delete: callCommand('deleteSecret', 'delete a secret that no published view names', {
      warning: 'the secret will be deleted; without a copy of its value nobody can make the same hashes again',
      done: 'Deleted.',
    }),
  },
  docs: { brief: 'manage secrets: keys that views hash with' },
})
