import { buildRouteMap } from '@stricli/core'
import { UserError } from '#lib/user-error.ts'
import { command } from './command.ts'
import { json, oneArgument, optional, parseId, required } from './parameters.ts'

const tokens = () => import('../operator/join-tokens.ts')

export const joinTokensCommands = buildRouteMap({
  routes: {
    create: command(
      'create a join token and print it once',
      async () => (await tokens()).createJoinToken,
      {
        flags: {
          name: required('what the token is for', 'NAME'),
          region: optional('region of the nodes; any if not set', 'REGION'),
          uses: optional('how many nodes may join with it, or `any`; one if not set', 'N', parseUses),
          ttl: optional('how long it is valid, such as 30m or 720h; 24h if not set', 'TIME'),
          json,
        },
      },
      'Creates a token with which nodes join, and prints it once. With the settings of control, the token pins the root certificate of control, if that is not one of a public CA.',
    ),
    list: command('list join tokens', async () => (await tokens()).listAllJoinTokens, { flags: { json } }),
    revoke: command('revoke a join token; nodes that joined with it stay', async () => (await tokens()).revokeOneJoinToken, {
      flags: { json },
      positional: oneArgument('id of the join token', 'ID', parseId),
    }),
  },
  docs: {
    brief: 'manage the tokens with which nodes join',
    fullDescription: 'Manages the tokens with which nodes join, directly in the database: control does not have to run.',
  },
})

function parseUses(text: string): number | 'any' {
  if (text === 'any') return text
  if (!/^\d+$/.test(text)) throw new UserError('must be a whole number, or any')
  return Number(text)
}
