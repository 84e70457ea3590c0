import { buildRouteMap } from '@stricli/core'
import { command } from './command.ts'
import { flag, json, oneArgument, optional, parseId, required } from './parameters.ts'

const keys = () => import('../operator/keys.ts')

const account = optional('id of the account; the first account if not set', 'ID', parseId)

export const keysCommands = buildRouteMap({
  routes: {
    create: command('create a key and print it once', async () => (await keys()).createKey, {
      flags: {
        name: required('what the key is for', 'NAME'),
        scope: {
          kind: 'parsed',
          parse: (text: string) => text.trim(),
          variadic: ',',
          brief: 'ingest (send data), metrics (read the state), query (read the data) or admin (manage everything)',
          placeholder: 'SCOPE',
          proposeCompletions: (partial) => ['ingest', 'metrics', 'query', 'admin'].filter((scope) => scope.startsWith(partial)),
        },
        endpoint: {
          kind: 'parsed',
          parse: parseId,
          variadic: ',',
          optional: true,
          brief: 'the only endpoints that the key is for; all of the account if not set',
          placeholder: 'ID',
        },
        origin: {
          kind: 'parsed',
          parse: (text: string) => text.trim(),
          variadic: ',',
          optional: true,
          brief:
            'makes the key public, for web pages of these origins: scope ingest and one endpoint (needs INLET_PUBLIC_KEYS=true)',
          placeholder: 'ORIGIN',
        },
        account,
        json,
      },
    }),
    list: command('list keys', async () => (await keys()).listKeys, { flags: { account, json } }),
    revoke: command(
      'revoke a key: nodes reject it within seconds',
      async () => (await keys()).revokeKey,
      {
        flags: {
          account,
          now: flag('the key leaked: end its tokens and MQTT connections at once, also if it is revoked already'),
          json,
        },
        positional: oneArgument('id of the key', 'ID', parseId),
      },
      'Revokes a key for good: nodes reject it within seconds. Tokens that were issued for it live until they expire, at most 15 minutes, and MQTT connections until they next authenticate, so that a key can be replaced without an outage. If the key leaked, --now ends all of it at once.',
    ),
  },
  docs: {
    brief: 'manage API keys',
    fullDescription: 'Manages the API keys of an account, directly in the database: control does not have to run.',
  },
})
