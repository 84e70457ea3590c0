/** Faults of an OpenID Connect provider, or of somebody between: nobody gets in, nothing is created, and the reason is shown. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { newControl, type TestControl, useControl } from '../support/control.ts'
import { client, startOpenIdProvider, type Tampering } from '../support/openid-provider.ts'
import { newLink, newPerson, TestBrowser } from '../support/people.ts'

const provider = await startOpenIdProvider('http://inlet.test/auth/callback/oidc')
afterAll(() => provider[Symbol.asyncDispose]())

const settingsOf = (issuer: string) => ({
  INLET_OIDC_ISSUER: issuer,
  INLET_OIDC_CLIENT_ID: client.id,
  INLET_OIDC_CLIENT_SECRET: client.secret,
  INLET_OIDC_NAME: 'Test provider',
})
const control = useControl({ environment: settingsOf(provider.issuer) })

const newEmail = (name = 'ada') => `${name}-${newId()}@example.com`
const countPeople = async (of: TestControl) => (await of.store.db.selectFrom('people').select('id').execute()).length

/** Begins to sign in somebody who is invited. Returns the address to which the provider leads back. */
async function cameBack(email = newEmail(), browser = new TestBrowser(control())) {
  const { account_id } = await control().newAccount()
  await newLink(control(), { account_id, role: 'viewer', email })
  const { body } = await browser.send('POST', '/auth/sign-in/provider', { to: '/in' })
  const { pathname, search, searchParams } = await provider.signIn(body.url, email)
  return { browser, path: pathname + search, searchParams, pathname, email }
}

async function expectNobody(browser: TestBrowser, visit: () => Promise<string>, error: RegExp): Promise<void> {
  const before = await countPeople(control())
  expect(await visit()).toMatch(error)
  expect(await browser.send('GET', '/v1/session')).toMatchObject({ status: 401 })
  expect(await countPeople(control())).toBe(before)
}

const later = (seconds: number) => Math.floor(Date.now() / 1000) + seconds
/** Changes the claims of the ID token. */
const withClaims =
  (claims: (subject: string) => Record<string, unknown>, as?: 'provider' | 'stranger'): Tampering =>
  async ({ id_token, ...tokens }) => ({ ...tokens, id_token: await provider.resign(id_token, claims(newId()), as) })

describe('an ID token is refused', () => {
  test.each<[string, Tampering]>([
    ['of another issuer', withClaims(() => ({ iss: 'https://evil.test' }))],
    ['for another client', withClaims(() => ({ aud: 'another' }))],
    ['for several clients, issued for another', withClaims(() => ({ aud: [client.id, 'another'], azp: 'another' }))],
    ['for several clients, not saying for which', withClaims(() => ({ aud: [client.id, 'another'] }))],
    ['with another nonce', withClaims(() => ({ nonce: 'another' }))],
    ['without a nonce', withClaims(() => ({ nonce: undefined }))],
    ['that has expired', withClaims(() => ({ exp: later(-3600) }))],
    ['that is not valid yet', withClaims(() => ({ nbf: later(3600) }))],
    ['about another person than the user info', withClaims((subject) => ({ sub: subject }))],
    ['signed with another key', withClaims(() => ({}), 'stranger')],
    ['that is not signed', ({ id_token, ...tokens }) => ({ ...tokens, id_token: unsigned(id_token) })],
    ['that is missing', ({ id_token: _, ...tokens }) => tokens],
    ['that is none', ({ id_token: _, ...tokens }) => ({ ...tokens, id_token: 'x' })],
  ])('%s', async (_name, change) => {
    const { browser, path } = await cameBack()
    using _tampered = provider.tamper('/token', change)
    await expectNobody(browser, () => browser.visit(path), /^\/sign-in\?error=unable_to_get_user_info/)
  })
})

function unsigned(idToken: string): string {
  const [, payload = ''] = idToken.split('.')
  return `${btoa('{"alg":"none"}').replaceAll('=', '')}.${payload}.`
}

test('refuses user info about somebody else, and without an e-mail address', async () => {
  for (const [change, error] of [
    [{ sub: newId() }, /error=unable_to_get_user_info/],
    [{ email: undefined }, /error=email_not_found/],
    [{ email_verified: 'false' }, /error=not_invited/],
    [{ email_verified: 'yes' }, /error=not_invited/],
    [{ email_verified: undefined }, /error=not_invited/],
  ] as const) {
    const { browser, path } = await cameBack()
    using _tampered = provider.tamper('/me', (info) => ({ ...info, ...change }))
    await expectNobody(browser, () => browser.visit(path), error)
  }
})

test('takes a verified address from a provider that writes true as text, as Amazon Cognito does', async () => {
  const { browser, path } = await cameBack()
  using _tampered = provider.tamper('/me', (info) => ({ ...info, email_verified: 'true' }))
  expect(await browser.visit(path)).toBe('/in')
})

describe('the way back', () => {
  test('works once: neither its state nor its code can be replayed', async () => {
    const { browser, path, pathname, searchParams } = await cameBack()
    const thief = new TestBrowser(control())
    expect(await browser.visit(path)).toBe('/in')
    for (const other of [thief, new TestBrowser(control())])
      await expectNobody(other, () => other.visit(path), /error=state_mismatch/)
    // The code of one with the state of the other.
    const { path: own } = await cameBack(newEmail('eve'), thief)
    const state = new URL(own, 'http://inlet.test').searchParams.get('state') ?? ''
    const code = searchParams.get('code') ?? ''
    const mixed = new URLSearchParams({ state, code, iss: provider.issuer })
    await expectNobody(thief, () => thief.visit(`${pathname}?${mixed}`), /error=invalid_code/)
  })

  test('is not another browser’s, which would sign in as whoever began (login CSRF)', async () => {
    const { path } = await cameBack()
    const victim = new TestBrowser(control())
    await expectNobody(victim, () => victim.visit(path), /error=state_mismatch/)
    // Nor if the victim has begun as well.
    await victim.send('POST', '/auth/sign-in/provider', { to: '/' })
    const { path: foreign } = await cameBack()
    await expectNobody(victim, () => victim.visit(foreign), /error=state_mismatch/)
  })

  test.each([
    ['of another provider', { iss: 'https://evil.test' }, /error=issuer_mismatch/],
    ['without a code', { code: undefined }, /error=no_code/],
    ['with another code', { code: 'another' }, /error=invalid_code/],
    ['with another state', { state: 'another' }, /error=state_mismatch/],
    ['without a state', { state: undefined }, /error=state_not_found/],
  ])('is refused %s', async (_name, change, error) => {
    const { browser, pathname, searchParams } = await cameBack()
    const entries = Object.entries({ ...Object.fromEntries(searchParams), ...change })
    const query = new URLSearchParams(entries.filter((entry): entry is [string, string] => entry[1] !== undefined))
    await expectNobody(browser, () => browser.visit(`${pathname}?${query}`), error)
  })

  test('leads to a page that shows nothing of the error but its code', async () => {
    const query = new URLSearchParams({ error: '<script>alert(1)</script>', error_description: 'call +1 555 0100' })
    const browser = new TestBrowser(control())
    await expectNobody(browser, () => browser.visit(`/auth/callback/oidc?${query}`), /^\/sign-in\?error=state_not_found$/)
  })

  test('is refused while the provider does not respond', async () => {
    const { browser, path } = await cameBack()
    using _tampered = provider.tamper('/token', () => null)
    await expectNobody(browser, () => browser.visit(path), /error=(invalid_code|unable_to_get_user_info)/)
  })
})

describe('a provider', () => {
  const controls: TestControl[] = []
  const log: string[] = []
  const hanging = createServer(() => undefined)
  beforeAll(() => new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve)))
  afterAll(async () => {
    for (const each of controls) await each[Symbol.asyncDispose]()
    hanging.closeAllConnections()
    hanging.close()
  })

  async function begin(issuer: string) {
    const other = await newControl({ environment: settingsOf(issuer), onLog: (line) => log.push(line) })
    controls.push(other)
    return { other, ...(await new TestBrowser(other).send('POST', '/auth/sign-in/provider', { to: '/' })) }
  }

  test('that is away stops only those who come by it', async () => {
    const { other, status, body } = await begin('http://127.0.0.1:1')
    expect([status, body.detail]).toEqual([503, 'Test provider does not respond: try again in a minute, or sign in another way'])
    expect(log.filter((line) => line.includes('"level":"error"'))).toEqual([])
    await newPerson(other, {})
  })

  test('that never responds is given up', async () => {
    const { port } = hanging.address() as AddressInfo
    const { status, body } = await begin(`http://127.0.0.1:${port}`)
    expect([status, body.detail]).toEqual([503, expect.stringContaining('does not respond')])
  }, 20_000)

  test('that calls itself by another name is refused, except for a slash at the end', async () => {
    const path = '/.well-known/openid-configuration'
    using _tampered = provider.tamper(path, (about) => ({ ...about, issuer: 'https://evil.test' }))
    const { status, body } = await begin(provider.issuer)
    expect([status, body.detail]).toEqual([503, expect.stringMatching(/calls itself https:\/\/evil\.test.*INLET_OIDC_ISSUER/)])
    using _again = provider.tamper(path, (about) => ({ ...about, issuer: `${provider.issuer}/` }))
    expect(await begin(provider.issuer)).toMatchObject({ status: 200 })
    expect(await begin(`${provider.issuer}/`)).toMatchObject({ status: 200 })
  })
})
