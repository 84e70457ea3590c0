/** Attacks on the sign-in by a page of another site, a poisoned header or a stolen link. */
import { describe, expect, test } from 'vitest'
import { newControl, useControl } from '../support/control.ts'
import { newLink, newPerson, TestBrowser } from '../support/people.ts'
import { RawClient } from '../support/raw-http.ts'

const origin = 'https://inlet.test'
/** As behind a proxy that ends TLS. */
const control = useControl({ environment: { INLET_BASE_URL: `${origin}/`, INLET_TRUST_PROXY: '127.0.0.1' } })
const newBrowser = (account_id?: string) => new TestBrowser(control(), account_id, origin)

async function signedIn(account_id: string | null = null) {
  const browser = newBrowser(account_id ?? undefined)
  const link = await newLink(control(), { account_id, role: account_id === null ? null : 'owner' })
  const answer = await browser.send('POST', '/auth/sign-in/link', { link }, { 'x-forwarded-for': '203.0.113.7' })
  expect(answer.status).toBe(200)
  return { browser, cookies: answer.headers.getSetCookie() }
}

test('under HTTPS, the cookie is for HTTPS alone, also behind a proxy that ends TLS', async () => {
  const { browser, cookies } = await signedIn()
  expect(cookies).toHaveLength(1)
  expect(cookies[0]).toMatch(/^__Secure-inlet\.session_token=/)
  for (const attribute of ['Secure', 'HttpOnly', 'SameSite=Lax', 'Path=/']) expect(cookies[0]?.split('; ')).toContain(attribute)
  expect(cookies[0]).not.toMatch(/Domain=/i)
  expect((await browser.send('GET', '/v1/sessions')).body.items).toMatchObject([{ address: '203.0.113.7', is_current: true }])
})

test('the address of the client is not what it says of itself, without a proxy that is trusted', async () => {
  await using open = await newControl()
  const person = await newPerson(open, {})
  const spoofed = { 'x-forwarded-for': '203.0.113.7', 'x-inlet-client-address': '203.0.113.7' }
  await person.send('POST', '/auth/sign-in/link', { link: await newLink(open) }, spoofed)
  const { body } = await person.send('GET', '/v1/sessions')
  expect(body.items).toMatchObject([{ address: '127.0.0.1' }])
})

test('links have the address of control, whatever the headers of a call say', async () => {
  const { account_id } = await control().newAccount()
  const { browser } = await signedIn(account_id)
  const body = '{"role":"viewer"}'
  const headers = Object.entries({
    ...browser.headers,
    'x-forwarded-host': 'evil.test',
    'x-forwarded-proto': 'http',
    forwarded: 'host=evil.test',
  })
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  await using client = await RawClient.connect(control().url)
  await client.send(
    `POST /v1/invitations HTTP/1.1\r\nHost: evil.test\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${lines}\r\n${body}`,
  )
  const answer = await client.answer()
  expect(answer.status).toBe(201)
  expect(answer.json['url']).toMatch(/^https:\/\/inlet\.test\/sign-in#link=/)
})

describe('a form or a simple request of another page', () => {
  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', ''])(
    'with %j does nothing',
    async (type) => {
      const link = await newLink(control())
      const { browser } = await signedIn()
      const { cookie } = browser
      const body = JSON.stringify({ link, name: 'Mallory' })
      for (const path of ['/auth/sign-in/link', '/auth/set-up', '/auth/sign-out', '/v1/accepted-invitations']) {
        const headers = { 'content-type': type, cookie, origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' }
        expect((await control().call('POST', path, body, headers)).status, path).toBeGreaterThanOrEqual(400)
      }
      // Also from a browser that sends neither Origin nor Fetch Metadata.
      for (const path of ['/auth/sign-in/link', '/auth/set-up'])
        expect((await control().call('POST', path, body, { 'content-type': type, cookie })).status, path).toBe(415)
      expect(await browser.send('GET', '/v1/session')).toMatchObject({ status: 200, body: { person: { name: 'Owner' } } })
      expect(await newBrowser().send('POST', '/auth/sign-in/link', { link })).toMatchObject({ status: 200 })
    },
  )

  test('gets no leave from control to send more (CORS)', async () => {
    for (const path of ['/v1/endpoints', '/auth/sign-in/email']) {
      const headers = {
        origin: 'https://evil.test',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'inlet-account',
      }
      const answer = await control().call('OPTIONS', path, undefined, headers)
      expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([])
    }
  })
})

test('signing in never keeps a token that the browser had before (session fixation)', async () => {
  const { browser: attacker } = await signedIn()
  const victim = newBrowser()
  const link = await newLink(control())
  const { status, headers } = await victim.send('POST', '/auth/sign-in/link', { link }, { cookie: attacker.cookie })
  expect(status).toBe(200)
  expect(headers.getSetCookie()[0]?.split(';')[0]).not.toBe(attacker.cookie)
  // The session of before has ended, for whoever else knows its token.
  expect(await victim.send('GET', '/v1/session')).toMatchObject({ status: 200 })
  expect(await attacker.send('GET', '/v1/session')).toMatchObject({ status: 401 })
  // Nor can a token be made up.
  for (const cookie of ['__Secure-inlet.session_token=x', `${attacker.cookie}x`, attacker.cookie.replace('__Secure-', '')])
    expect(await newBrowser().send('GET', '/v1/session', undefined, { cookie })).toMatchObject({ status: 401 })
})

test('names and addresses with markup or line breaks are text, or refused', async () => {
  const { account_id } = await control().newAccount()
  const { browser } = await signedIn(account_id)
  const name = '<img src=x onerror=alert(1)>'
  expect(await browser.send('POST', '/auth/set-up', { name })).toMatchObject({ status: 200 })
  const people = await browser.send('GET', '/v1/people')
  expect(people.headers.get('content-type')).toMatch(/^application\/json/)
  expect(people.headers.get('x-content-type-options')).toBe('nosniff')
  expect(people.body.items).toMatchObject([{ name }])
  for (const bad of ['a\r\nSet-Cookie: x=y', 'a\u0000b', '\u202eadA', ''])
    expect((await browser.send('POST', '/auth/set-up', { name: bad })).status, JSON.stringify(bad)).toBe(400)
  for (const email of ['"<script>"@example.com', 'a@example.com\r\nBcc: b@example.com', '<b>@example.com'])
    expect((await browser.send('POST', '/auth/set-up', { email })).status, email).toBe(400)
})

test('an address tries as often as the operator allows, by all ways of signing in together', async () => {
  await using strict = await newControl({ environment: { INLET_EXCHANGE_REQUESTS_PER_MINUTE: '3' } })
  const statuses: number[] = []
  for (const path of ['/auth/sign-in/link', '/auth/set-up', '/auth/sign-in/email', '/auth/sign-in/link'])
    statuses.push((await new TestBrowser(strict).send('POST', path, { link: 'x'.repeat(32) })).status)
  expect(statuses.slice(0, 3).every((status) => status === 400 || status === 401)).toBe(true)
  expect(statuses[3]).toBe(429)
})
