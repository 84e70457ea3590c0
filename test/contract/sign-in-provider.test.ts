/** Signing in with an OpenID Connect provider. */
import { sql } from 'kysely'
import { afterAll, describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { operatorToken, useControl } from '../support/control.ts'
import { client, startOpenIdProvider } from '../support/openid-provider.ts'
import { newLink, newPerson, TestBrowser } from '../support/people.ts'

const provider = await startOpenIdProvider('http://inlet.test/auth/callback/oidc')
afterAll(() => provider[Symbol.asyncDispose]())
const control = useControl({
  environment: {
    INLET_OIDC_ISSUER: provider.issuer,
    INLET_OIDC_CLIENT_ID: client.id,
    INLET_OIDC_CLIENT_SECRET: client.secret,
    INLET_OIDC_NAME: 'Test provider',
  },
})
const newBrowser = () => new TestBrowser(control())

/** Goes to the provider and back. Returns where the console leads then. */
async function comeBack(person: TestBrowser, email: string, path = '/auth/sign-in/provider', to = '/in'): Promise<string> {
  const { status, body } = await person.send('POST', path, { to })
  expect(status, JSON.stringify(body)).toBe(200)
  const back = await provider.signIn(body.url, email)
  expect(back.origin).toBe('http://inlet.test')
  return person.visit(back.pathname + back.search)
}

const newEmail = (name = 'ada') => `${name}-${newId()}@example.com`

describe('somebody new', () => {
  test('comes in with an invitation to the e-mail address that the provider verified', async () => {
    const { account_id } = await control().newAccount()
    const email = newEmail()
    await newLink(control(), { account_id, role: 'member', email })
    const person = newBrowser()
    expect(await comeBack(person, email, undefined, '/in/x?y=1')).toBe('/in/x?y=1')
    expect((await person.send('GET', '/v1/session')).body).toMatchObject({
      person: { email, is_operator: false },
      accounts: [{ account_id, role: 'member' }],
    })
    // The next time it is the same person.
    const again = newBrowser()
    await comeBack(again, email)
    const ids = await Promise.all([person, again].map(async (one) => (await one.send('GET', '/v1/session')).body.person.id))
    expect(ids[0]).toBe(ids[1])
    const kept = await sql`SELECT * FROM sign_ins WHERE person_id = ${ids[0]}`.execute(control().store.db)
    expect(kept.rows).toMatchObject([{ provider: 'oidc', access_token: null, refresh_token: null, id_token: null }])
  })

  test('stays outside without an invitation, or with an address that is not verified', async () => {
    const { account_id } = await control().newAccount()
    const unverified = newEmail('unverified')
    await newLink(control(), { account_id, role: 'member', email: unverified })
    for (const email of [newEmail(), unverified]) {
      const person = newBrowser()
      expect(await comeBack(person, email)).toMatch(/^\/sign-in\?.*error=not_invited/)
      expect(await person.send('GET', '/v1/session')).toMatchObject({ status: 401 })
    }
  })

  test('does not become somebody who has the same e-mail address', async () => {
    const { account_id } = await control().newAccount()
    const email = newEmail()
    const owner = await newPerson(control(), { account_id, role: 'owner', email })
    const stranger = newBrowser()
    expect(await comeBack(stranger, email)).toMatch(/error=account_not_linked/)
    expect(await stranger.send('GET', '/v1/session')).toMatchObject({ status: 401 })
    // Connected by the person, it leads in.
    expect(await comeBack(owner, email, '/auth/connect-provider')).toBe('/me')
    expect(await comeBack(stranger, email)).toBe('/in')
    expect((await stranger.send('GET', '/v1/session')).body.person.id).toBe(owner.person_id)
  })
})

test('nobody joins a suspended account, and the invitation waits', async () => {
  const { account_id } = await control().newAccount()
  const email = newEmail()
  await newLink(control(), { account_id, role: 'member', email, created_by: `person:${newId()}` })
  const setStatus = (status: string) =>
    control().call('PATCH', `/v1/accounts/${account_id}`, { status }, { authorization: `Bearer ${operatorToken}` })
  await setStatus('suspended')
  const person = newBrowser()
  expect(await comeBack(person, email)).toMatch(/^\/sign-in\?.*error=account_suspended/)
  expect(await person.send('GET', '/v1/session')).toMatchObject({ status: 401 })
  await setStatus('active')
  await comeBack(person, email)
  expect((await person.send('GET', '/v1/session')).body.accounts).toMatchObject([{ account_id, role: 'member' }])
})

test('an e-mail address that somebody typed brings no invitation to it', async () => {
  const { account_id } = await control().newAccount()
  const email = newEmail()
  await newLink(control(), { account_id, role: 'owner', email })
  const squatter = await newPerson(control(), {})
  expect(await squatter.send('POST', '/auth/set-up', { email })).toMatchObject({ status: 200 })
  expect((await squatter.send('GET', '/v1/session')).body).toMatchObject({ person: { email }, accounts: [] })
  // Nor does it with the provider, whose address is another one.
  expect(await comeBack(squatter, newEmail('other'), '/auth/connect-provider')).toBe('/me')
  expect((await squatter.send('GET', '/v1/session')).body.accounts).toEqual([])
})

test('leads to no other site', async () => {
  const { account_id } = await control().newAccount()
  for (const to of ['//evil.test/', '/\\evil.test', 'https://evil.test/', '/\t/evil.test']) {
    const email = newEmail()
    await newLink(control(), { account_id, role: 'viewer', email })
    expect(await comeBack(newBrowser(), email, undefined, to)).toBe('/')
  }
})

test('names the provider for the button', async () => {
  expect(await newBrowser().send('GET', '/auth/ways')).toMatchObject({
    body: { provider: { name: 'Test provider' }, is_signed_in: false },
  })
  const person = await newPerson(control(), {})
  expect(await person.send('GET', '/auth/ways')).toMatchObject({ body: { is_signed_in: true } })
})
