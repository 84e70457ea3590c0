/** Commands that change something print it with `--json` as the API does, with its secret, and nothing else. */
import { expect } from 'vitest'
import { z } from 'zod'
import { readConfig } from '#config/config.ts'
import { Account, CreatedAccount } from '#model/account.ts'
import { ApiKey, CreatedApiKey } from '#model/api-key.ts'
import { CreatedJoinToken, JoinToken } from '#model/join-token.ts'
import { runCli } from '../support/cli.ts'
import { anAccount, describeStores } from './fixtures.ts'

const SignInLink = z.strictObject({
  url: z.url(),
  expires_at: z.iso.datetime(),
  email: z.null(),
  account_id: z.uuid(),
  operator: z.boolean(),
})

describeStores('--json', (test) => {
  test('of commands that create and change', async ({ store }) => {
    await anAccount(store)
    const run = async <T>(type: z.ZodType<T>, ...args: string[]): Promise<T> => {
      const { out, err } = await runCli([...args, '--json'], { config: readConfig({ INLET_DATABASE_URL: store.url }) })
      expect(err).toBe('')
      return type.parse(JSON.parse(out))
    }
    const key = await run(CreatedApiKey.strict(), 'keys', 'create', '--name', 'ci', '--scope', 'ingest')
    expect(key).toMatchObject({ name: 'ci', scopes: ['ingest'], revoked_at: null })
    expect((await run(ApiKey.strict(), 'keys', 'revoke', key.id)).revoked_at).not.toBeNull()
    const account = await run(CreatedAccount.partial(), 'accounts', 'create', '--name', 'acme')
    expect(account.first_key?.api_key).toMatch(/^ing_live_/)
    const id = account.id ?? ''
    expect(await run(Account.partial(), 'accounts', 'rename', id, '--name', 'acme 2')).toMatchObject({ name: 'acme 2' })
    expect(await run(Account.partial(), 'accounts', 'suspend', id)).toMatchObject({ status: 'suspended' })
    expect(await run(Account.partial(), 'accounts', 'resume', id)).toMatchObject({ status: 'active' })
    const token = await run(CreatedJoinToken.strict(), 'join-tokens', 'create', '--name', 'fra', '--uses', '2')
    expect(token.uses_max).toBe(2)
    expect(await run(JoinToken.strict(), 'join-tokens', 'revoke', token.id)).toMatchObject({ status: 'revoked' })
    expect(await run(SignInLink, 'sign-in-link')).toMatchObject({ operator: true })
  })
})
