/** People with sessions of the console, and the credentials that each operation of the API needs. */
import { expect } from 'vitest'
import { newSignInLink } from '#auth/sign-in-link.ts'
import type { Role } from '#model/person.ts'
import { insertSignInLink } from '#store/accounts/sign-in-links.ts'
import { type Answer, operatorToken, type TestAccount, type TestControl } from './control.ts'

export type LinkFor = {
  readonly person_id?: string | null
  readonly email?: string | null
  readonly created_by?: string
  readonly account_id?: string | null
  readonly role?: Role | null
  readonly is_operator?: boolean
  readonly lasts_ms?: number
}

/** Returns the secret of a new one-time link. */
export async function newLink({ store, clock }: TestControl, link: LinkFor = {}): Promise<string> {
  const { is_operator: makes_operator = false, lasts_ms = 60_000, ...more } = link
  const to = { person_id: null, email: null, account_id: null, role: null, created_by: 'cli', ...more }
  const { secret, link: stored } = newSignInLink({ ...to, makes_operator, lasts_ms }, clock.now())
  await insertSignInLink(store.db, stored, clock.now())
  return secret
}

type Headers = Readonly<Record<string, string>>

/** A browser: it keeps cookies, and names an account. */
export class TestBrowser {
  readonly #control: TestControl
  readonly #account: string
  readonly #origin: string
  readonly #cookies = new Map<string, string>()

  constructor(control: TestControl, account_id = 'none', origin = 'http://inlet.test') {
    this.#control = control
    this.#account = account_id
    this.#origin = origin
  }

  get cookie(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  get headers(): Headers {
    return { cookie: this.cookie, 'inlet-account': this.#account, origin: this.#origin, 'sec-fetch-site': 'same-origin' }
  }

  async send(method: string, path: string, body?: unknown, more: Headers = {}): Promise<Answer> {
    const answer = await this.#control.call(method, path, body, { ...this.headers, ...more })
    this.#keepCookies(answer.headers)
    return answer
  }

  /** Calls in another account of the same person. */
  sendIn(account_id: string, method: string, path: string, body?: unknown): Promise<Answer> {
    return this.send(method, path, body, { 'inlet-account': account_id })
  }

  /** Opens an address of control as a link does. Returns where it leads. */
  async visit(path: string): Promise<string> {
    const response = await fetch(this.#control.url + path, { redirect: 'manual', headers: { cookie: this.cookie } })
    this.#keepCookies(response.headers)
    return response.headers.get('location') ?? ''
  }

  #keepCookies(headers: globalThis.Headers): void {
    for (const set of headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      if (/max-age=0/i.test(set)) this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
  }
}

/** Somebody who has just come in by a link. */
export async function newPerson(control: TestControl, link: LinkFor): Promise<TestBrowser & { readonly person_id: string }> {
  const browser = new TestBrowser(control, link.account_id ?? 'none')
  const { status, body } = await browser.send('POST', '/auth/sign-in/link', { link: await newLink(control, link), name: 'Ada' })
  expect(status, JSON.stringify(body)).toBe(200)
  return Object.assign(browser, { person_id: String(body.person_id) })
}

/** Returns what to send with an operation of each scope. */
export async function credentialsOf(
  control: TestControl,
  { account_id, api_key }: TestAccount,
): Promise<(scope: string) => Record<string, string>> {
  const { body } = await control.call('POST', '/v1/token/exchange', { api_key, scope: 'admin', ttl: '1h' })
  const owner = await newPerson(control, { account_id, role: 'owner' })
  return (scope) => {
    if (scope === 'owner' || scope === 'person') return { ...owner.headers }
    return { authorization: `Bearer ${scope === 'operator' ? operatorToken : body.access_token}` }
  }
}
