/** Signing in to the console, and who belongs to an account. */
import { describe, expect } from 'vitest'
import { newId } from '#model/id.ts'
import { signInLimits } from '#model/limits.ts'
import { testWithAccount, useControl } from '../support/control.ts'
import { newLink, newPerson, TestBrowser } from '../support/people.ts'

const control = useControl()
const test = testWithAccount(control)
const password = 'correct horse battery'

const newBrowser = (account_id?: string) => new TestBrowser(control(), account_id)

describe('POST /auth/sign-in/link', () => {
  test('signs in once, with a cookie that scripts cannot read', async () => {
    const { account_id } = await control().newAccount()
    const link = await newLink(control(), { account_id, role: 'owner' })
    const person = newBrowser()
    const answer = await person.send('POST', '/auth/sign-in/link', { link, name: 'Ada' })
    expect(answer).toMatchObject({ status: 200, body: { person_id: expect.any(String) } })
    const [cookie = ''] = answer.headers.getSetCookie()
    expect(cookie).toMatch(/HttpOnly/)
    expect(cookie).toMatch(/SameSite=Lax/)
    expect(await person.send('GET', '/v1/session')).toMatchObject({
      status: 200,
      body: {
        ...{ person: { name: 'Ada', email: null, is_operator: false }, accounts: [{ account_id, role: 'owner' }] },
        allows_public_keys: false,
      },
    })
    expect(await newBrowser().send('POST', '/auth/sign-in/link', { link })).toMatchObject({
      status: 401,
      body: { error: 'unauthorized' },
    })
  })

  test('refuses a link that is too old, or never was', async () => {
    for (const link of [await newLink(control(), { lasts_ms: -1 }), 'x'.repeat(32)])
      expect(await newBrowser().send('POST', '/auth/sign-in/link', { link })).toMatchObject({ status: 401 })
  })
})

test('HEAD is not an operation of the sign-in', async () => {
  const paths = ['/auth/list-accounts', '/auth/passkey/list-user-passkeys', '/auth/passkey/generate-authenticate-options']
  for (const path of paths) expect(await newBrowser().send('HEAD', path)).toMatchObject({ status: 405 })
})

describe('GET /v1/people', () => {
  test('tells senders no e-mail addresses', async ({ account }) => {
    expect(await account.as('ingest').get('/v1/people')).toMatchObject({ status: 403 })
    expect(await account.as('metrics').get('/v1/people')).toMatchObject({ status: 200 })
  })
})

describe('a person with an e-mail address and a password', () => {
  test('signs in again, and not with another password', async () => {
    const { account_id } = await control().newAccount()
    const person = await newPerson(control(), { account_id, role: 'owner' })
    const email = `ada-${newId()}@example.com`
    expect(await person.send('POST', '/auth/set-up', { email, password })).toMatchObject({ status: 200 })
    const again = newBrowser()
    expect(await again.send('POST', '/auth/sign-in/email', { email, password: 'wrong horse battery' })).toMatchObject({
      status: 401,
    })
    expect(await again.send('POST', '/auth/sign-in/email', { email, password })).toMatchObject({ status: 200 })
    expect(await again.send('GET', '/v1/session')).toMatchObject({ body: { person: { id: person.person_id, email } } })
  })

  test('is tried ten times a minute, from whatever addresses and by whatever letters', async () => {
    const email = `mallory-${newId()}@example.com`
    const statuses: number[] = []
    for (let tried = 0; tried < signInLimits.triesOfEmailPerMinute + 1; tried++) {
      const body = { email: tried % 2 === 0 ? email : email.toUpperCase(), password: 'wrong horse battery' }
      statuses.push((await newBrowser().send('POST', '/auth/sign-in/email', body)).status)
    }
    expect(statuses).toEqual([...Array(signInLimits.triesOfEmailPerMinute).fill(401), 429])
    // Somebody else signs in meanwhile.
    const other = { email: `ada-${newId()}@example.com`, password }
    expect(await newBrowser().send('POST', '/auth/sign-in/email', other)).toMatchObject({ status: 401 })
  })

  test('ends all other sessions by a change of the password, also if the call does not ask for it', async () => {
    const person = await newPerson(control(), {})
    const email = `ida-${newId()}@example.com`
    await person.send('POST', '/auth/set-up', { email, password })
    const thief = newBrowser()
    await thief.send('POST', '/auth/sign-in/email', { email, password })
    const change = { currentPassword: password, newPassword: 'another horse battery', revokeOtherSessions: false }
    const wrong = { ...change, currentPassword: 'wrong horse battery' }
    expect(await person.send('POST', '/auth/change-password', wrong)).toMatchObject({ status: 400 })
    const before = person.cookie
    expect(await person.send('POST', '/auth/change-password', change)).toMatchObject({ status: 200 })
    expect(await thief.send('GET', '/v1/session')).toMatchObject({ status: 401 })
    expect(await person.send('GET', '/v1/session')).toMatchObject({ status: 200 })
    expect(await person.send('GET', '/v1/session', undefined, { cookie: before })).toMatchObject({ status: 401 })
    expect(await thief.send('POST', '/auth/sign-in/email', { email, password })).toMatchObject({ status: 401 })
  })

  test('has one password, which only who knows it changes', async () => {
    const person = await newPerson(control(), {})
    expect(await person.send('POST', '/auth/set-up', { password })).toMatchObject({ status: 200 })
    expect(await person.send('POST', '/auth/set-up', { password: 'another horse battery' })).toMatchObject({ status: 409 })
  })

  test('is nobody if the address is none, however long', async () => {
    for (const email of [
      'x'.repeat(500_000),
      `${'x'.repeat(500)}@example.com`,
      'a\u0000@example.com',
      'a@b\r\nc',
      { $ne: null },
      ['a'],
    ]) {
      const { status } = await newBrowser().send('POST', '/auth/sign-in/email', { email, password })
      expect([400, 401], JSON.stringify(email).slice(0, 40)).toContain(status)
    }
  })

  test('ends a session by signing out, and others from a list', async () => {
    const { account_id } = await control().newAccount()
    const person = await newPerson(control(), { account_id, role: 'owner' })
    const email = `eve-${newId()}@example.com`
    await person.send('POST', '/auth/set-up', { email, password })
    const other = newBrowser()
    await other.send('POST', '/auth/sign-in/email', { email, password })
    const { body: sessions } = await person.send('GET', '/v1/sessions')
    expect(sessions.items).toHaveLength(2)
    expect(JSON.stringify(sessions)).not.toContain('token')
    expect(await person.send('DELETE', '/v1/sessions')).toMatchObject({ status: 204 })
    expect(await other.send('GET', '/v1/session')).toMatchObject({ status: 401 })
    await other.send('POST', '/auth/sign-in/email', { email, password })
    const { body: again } = await person.send('GET', '/v1/sessions')
    const { id } = again.items.find((session: { is_current: boolean }) => !session.is_current)
    const stranger = await newPerson(control(), {})
    expect(await stranger.send('DELETE', `/v1/sessions/${id}`)).toMatchObject({ status: 404 })
    expect(await person.send('DELETE', `/v1/sessions/${id}`)).toMatchObject({ status: 204 })
    expect(await other.send('GET', '/v1/session')).toMatchObject({ status: 401 })
    expect(await person.send('POST', '/auth/sign-out')).toMatchObject({ status: 200 })
    expect(await person.send('GET', '/v1/session')).toMatchObject({ status: 401 })
  })
})

describe('a session calls the management API', () => {
  test('in the accounts of the person only, and within the role', async () => {
    const [mine, foreign] = [await control().newAccount(), await control().newAccount()]
    const owner = await newPerson(control(), { account_id: mine.account_id, role: 'owner' })
    const viewer = await newPerson(control(), { account_id: mine.account_id, role: 'viewer' })
    expect(await owner.send('GET', '/v1/endpoints')).toMatchObject({ status: 200 })
    expect(await owner.sendIn(foreign.account_id, 'GET', '/v1/endpoints')).toMatchObject({ status: 403 })
    expect(await viewer.send('GET', '/v1/endpoints')).toMatchObject({ status: 200 })
    expect(await viewer.send('POST', '/v1/keys', { name: 'x', scopes: ['ingest'] })).toMatchObject({ status: 403 })
    const { status, body } = await owner.send('POST', '/v1/keys', { name: 'x', scopes: ['ingest'] })
    expect(status).toBe(201)
    const { body: events } = await owner.send('GET', '/v1/audit-events?operation=createKey')
    expect(events.items[0]).toMatchObject({ actor: `person:${owner.person_id}`, resource_id: body.id })
  })

  test('not without the header that names the account, nor for another page', async () => {
    const { account_id } = await control().newAccount()
    const person = await newPerson(control(), { account_id, role: 'owner' })
    const { cookie } = person
    expect(await control().call('GET', '/v1/endpoints', undefined, { cookie })).toMatchObject({ status: 401 })
    const foreign = { 'sec-fetch-site': 'cross-site' }
    expect(await person.send('GET', '/v1/endpoints', undefined, foreign)).toMatchObject({ status: 403 })
    expect(await person.send('POST', '/auth/sign-out', undefined, foreign)).toMatchObject({ status: 403 })
    // As an old browser sends it, without Fetch Metadata.
    for (const origin of ['https://evil.test', 'null', 'http://inlet.test:8443']) {
      const from = { cookie, 'inlet-account': account_id, origin }
      for (const [method, path] of [
        ['GET', '/v1/endpoints'],
        ['POST', '/v1/keys'],
        ['GET', '/v1/session'],
      ] as const)
        expect(await control().call(method, path, undefined, from)).toMatchObject({
          status: 403,
          body: { detail: expect.stringContaining('open http://inlet.test') },
        })
    }
    const own = { cookie, 'inlet-account': account_id }
    expect(await control().call('GET', '/v1/endpoints', undefined, own)).toMatchObject({ status: 200 })
  })

  test('a program with a token may send any origin', async ({ account }) => {
    const { body } = await control().call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'metrics' })
    const headers = { authorization: `Bearer ${body.access_token}`, origin: 'https://app.example.com' }
    expect(await control().call('GET', '/v1/endpoints', undefined, headers)).toMatchObject({ status: 200 })
  })

  test('operations of the operator only for a person who is one', async () => {
    const [operator, other] = [await newPerson(control(), { is_operator: true }), await newPerson(control(), {})]
    expect(await operator.send('GET', '/v1/nodes')).toMatchObject({ status: 200 })
    expect(await other.send('GET', '/v1/nodes')).toMatchObject({ status: 403 })
  })
})

describe('people of an account', () => {
  test('come by an invitation, get another role, and go', async () => {
    const { account_id } = await control().newAccount()
    const owner = await newPerson(control(), { account_id, role: 'owner' })
    const { status, body: invitation } = await owner.send('POST', '/v1/invitations', { role: 'member' })
    expect([status, invitation.role]).toEqual([201, 'member'])
    const link = new URL(invitation.url).hash.replace('#link=', '')
    expect((await owner.send('GET', '/v1/invitations')).body.items).toMatchObject([{ id: invitation.id }])
    const guest = newBrowser(account_id)
    const { body } = await guest.send('POST', '/auth/sign-in/link', { link, name: 'Grace' })
    expect((await owner.send('GET', '/v1/invitations')).body.items).toEqual([])
    expect((await guest.send('GET', '/v1/people')).body.items).toMatchObject([
      { role: 'owner' },
      { name: 'Grace', role: 'member' },
    ])
    expect(await guest.send('DELETE', `/v1/people/${owner.person_id}`)).toMatchObject({ status: 403 })
    expect(await owner.send('PATCH', `/v1/people/${body.person_id}`, { role: 'viewer' })).toMatchObject({ status: 204 })
    expect(await owner.send('DELETE', `/v1/people/${body.person_id}`)).toMatchObject({ status: 204 })
    expect(await guest.send('GET', '/v1/endpoints')).toMatchObject({ status: 403 })
  })

  test('keep an owner', async () => {
    const { account_id } = await control().newAccount()
    const owner = await newPerson(control(), { account_id, role: 'owner' })
    const path = `/v1/people/${owner.person_id}`
    expect(await owner.send('PATCH', path, { role: 'viewer' })).toMatchObject({ status: 409 })
    expect(await owner.send('DELETE', path)).toMatchObject({ status: 409 })
    expect(await owner.send('GET', '/v1/session')).toMatchObject({ body: { accounts: [{ role: 'owner' }] } })
  })

  test('a revoked invitation does not work', async () => {
    const { account_id } = await control().newAccount()
    const owner = await newPerson(control(), { account_id, role: 'owner' })
    const { body: invitation } = await owner.send('POST', '/v1/invitations', { role: 'viewer' })
    expect(await owner.send('DELETE', `/v1/invitations/${invitation.id}`)).toMatchObject({ status: 204 })
    const link = new URL(invitation.url).hash.replace('#link=', '')
    expect(await newBrowser().send('POST', '/auth/sign-in/link', { link })).toMatchObject({ status: 401 })
    expect(await owner.send('DELETE', `/v1/invitations/${invitation.id}`)).toMatchObject({ status: 404 })
  })
})

test('signing in ends the session that the browser had', async () => {
  const { account_id } = await control().newAccount()
  const ada = await newPerson(control(), { account_id, role: 'owner' })
  const elsewhere = newBrowser(account_id)
  const again = await newLink(control(), { person_id: ada.person_id })
  expect(await elsewhere.send('POST', '/auth/sign-in/link', { link: again })).toMatchObject({ status: 200 })
  const { headers } = ada
  const link = await newLink(control(), { account_id, role: 'member' })
  expect(await ada.send('POST', '/auth/sign-in/link', { link, name: 'Grace' })).toMatchObject({ status: 200 })
  expect(await ada.send('GET', '/v1/session')).toMatchObject({ body: { person: { name: 'Grace' } } })
  expect(await control().call('GET', '/v1/session', undefined, headers)).toMatchObject({ status: 401 })
  // Only that one: no other session of the person ends.
  expect(await elsewhere.send('GET', '/v1/sessions')).toMatchObject({ body: { items: [{ is_current: true }] } })
})

test('the cookie of a session lasts as long as the session, which visits extend', async () => {
  const person = await newPerson(control(), {})
  const { store } = control()
  const soon = new Date(Date.now() + 3_600_000).toISOString()
  await store.db.updateTable('sessions').set({ expires_at: soon }).where('person_id', '=', person.person_id).execute()
  const { headers, body } = await person.send('GET', '/v1/session')
  expect(headers.getSetCookie().join()).toMatch(/Max-Age=1209600/)
  expect(Date.parse(body.expires_at)).toBeGreaterThan(Date.parse(soon))
  expect((await person.send('GET', '/v1/session')).headers.getSetCookie()).toEqual([])
})

describe('POST /v1/accepted-invitations', () => {
  test('gives a person one more account, once', async () => {
    const [first, second] = [await control().newAccount(), await control().newAccount()]
    const person = await newPerson(control(), { account_id: first.account_id, role: 'viewer' })
    const link = await newLink(control(), { account_id: second.account_id, role: 'member' })
    const path = '/v1/accepted-invitations'
    const joined = { account_id: second.account_id, role: 'member' }
    expect(await person.send('POST', path, { link })).toMatchObject({ status: 200, body: joined })
    expect((await person.send('GET', '/v1/session')).body.accounts).toHaveLength(2)
    expect(await person.sendIn(second.account_id, 'GET', '/v1/endpoints')).toMatchObject({ status: 200 })
    expect(await person.send('POST', path, { link })).toMatchObject({ status: 404 })
    const { body: trail } = await second.get('/v1/audit-events?operation=joinAccount')
    expect(trail.items).toMatchObject([{ actor: `person:${person.person_id}` }])
  })

  test('leaves an invitation to an own account for somebody else', async () => {
    const { account_id } = await control().newAccount()
    const person = await newPerson(control(), { account_id, role: 'viewer' })
    const link = await newLink(control(), { account_id, role: 'owner' })
    expect(await person.send('POST', '/v1/accepted-invitations', { link })).toMatchObject({ status: 409 })
    expect(await newBrowser().send('POST', '/auth/sign-in/link', { link })).toMatchObject({ status: 200 })
  })

  test('takes no link that makes an operator, nor one for a person', async () => {
    const { account_id } = await control().newAccount()
    const person = await newPerson(control(), {})
    const other = await newPerson(control(), {})
    const links = [{ is_operator: true }, { person_id: other.person_id }]
    for (const more of links) {
      const link = await newLink(control(), { account_id, role: 'owner', ...more })
      expect(await person.send('POST', '/v1/accepted-invitations', { link })).toMatchObject({ status: 404 })
    }
  })
})
