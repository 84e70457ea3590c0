import { expect } from 'vitest'
import { readConfig } from '#config/config.ts'
import { newId } from '#model/id.ts'
import { listAuditEvents } from '#store/accounts/audit-events.ts'
import { runCli } from '../support/cli.ts'
import { anAccount, describeStores } from './fixtures.ts'

function signInLink(url: string, ...args: string[]) {
  return runCli(['sign-in-link', ...args], { config: readConfig({ INLET_DATABASE_URL: url }) })
}

describeStores('inlet sign-in-link', (test) => {
  test('is for an operator who owns the first account, or the owner of another one, who operates nothing', async ({ store }) => {
    const [first, other] = [await anAccount(store), await anAccount(store)]
    const links = () =>
      store.db.selectFrom('sign_in_links').selectAll().orderBy('created_at').orderBy('makes_operator', 'desc').execute()
    expect((await signInLink(store.url)).out).toMatch(
      /^http\S+\/sign-in#link=\w+\n\nThe link works once, .* operate the installation\.\n$/,
    )
    const owned = await signInLink(store.url, '--account', other)
    expect(owned.out).toMatch(/who will own the account "[^"]+"\.\n$/)
    expect(await links()).toMatchObject([
      { account_id: first, role: 'owner', makes_operator: 1, person_id: null },
      { account_id: other, role: 'owner', makes_operator: 0, person_id: null },
    ])
    const { items } = await listAuditEvents(store.db, other, { limit: 10 })
    expect(items).toMatchObject([{ actor: 'cli', operation: 'createSignInLink', result: 'succeeded' }])
  })

  test('names an account and a person that do not exist', async ({ store }) => {
    await anAccount(store)
    expect(await signInLink(store.url, '--account', newId())).toMatchObject({ code: 1, err: expect.stringContaining('account') })
    const { code, err } = await signInLink(store.url, '--email', 'ada@example.com')
    expect([code, err]).toEqual([1, expect.stringContaining('nobody has the e-mail address ada@example.com')])
  })
})
