/** A real OpenID Connect provider on this machine, and somebody who signs in at it. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { decodeJwt, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import Provider from 'oidc-provider'

export type OpenIdProvider = AsyncDisposable & {
  readonly issuer: string
  /** Signs in at the page to which `url` leads, and returns the address to which the provider leads back. */
  readonly signIn: (url: string, login: string) => Promise<URL>
  /** Changes the responses of one of its paths, until the result is disposed. */
  readonly tamper: (path: string, change: Tampering) => Disposable
  /** Returns an ID token with some claims replaced, signed as the provider does, or with another key under the name of the provider's. */
  readonly resign: (idToken: string, claims: JWTPayload, as?: 'provider' | 'stranger') => Promise<string>
}

// biome-ignore lint/suspicious/noExplicitAny: responses of any form
export type Tampering = (body: any) => unknown

export const client = { id: 'inlet', secret: 'a-client-secret-of-the-tests-0123456789' }

/** Signs in everybody with the e-mail address that they type; addresses that begin with `unverified` are not verified. */
export async function startOpenIdProvider(redirectUri: string): Promise<OpenIdProvider> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const [own, foreign] = await Promise.all([newKey(), newKey()])
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(own)), ...keyHeader, use: 'sig' }] },
    clients: [{ client_id: client.id, client_secret: client.secret, redirect_uris: [redirectUri] }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, email: id, email_verified: !id.startsWith('unverified'), name: id.split('@')[0] }),
    }),
  })
  const tampered = new Map<string, Tampering>()
  const answer = provider.callback()
  server.on('request', (request, response) => {
    const change = tampered.get(new URL(request.url ?? '/', issuer).pathname)
    if (change !== undefined) changeBody(response, change)
    answer(request, response)
  })
  return {
    issuer,
    tamper: (path, change) => {
      tampered.set(path, change)
      return { [Symbol.dispose]: () => void tampered.delete(path) }
    },
    resign: (idToken, claims, as = 'provider') =>
      new SignJWT({ ...decodeJwt(idToken), ...claims }).setProtectedHeader(keyHeader).sign(as === 'provider' ? own : foreign),
    signIn: (url, login) => signInAt(issuer, url, login),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const keyHeader = { alg: 'RS256', kid: 'key-of-the-tests' }

async function newKey() {
  return (await generateKeyPair('RS256', { extractable: true })).privateKey
}

/** Koa ends a response with its whole body. */
function changeBody(response: ServerResponse, change: Tampering): void {
  const end = response.end.bind(response) as (body: string) => ServerResponse
  response.end = ((body: string) => {
    void Promise.resolve(change(JSON.parse(String(body)))).then((changed) => {
      response.removeHeader('content-length')
      end(JSON.stringify(changed))
    })
    return response
  }) as typeof response.end
}

const stepsMax = 12

/** Follows redirects as a browser does, and fills in the forms. */
async function signInAt(issuer: string, start: string, login: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let url = new URL(start)
  let form: Record<string, string> | undefined
  for (let step = 0; step < stepsMax; step++) {
    if (url.origin !== issuer) return url
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const body = form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }
    const response = await fetch(url, { redirect: 'manual', headers: { cookie }, ...body })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const to = response.headers.get('location')
    const page = await response.text()
    if (to !== null) {
      url = new URL(to, url)
      form = undefined
    } else if (form === undefined && response.ok) {
      form = page.includes('name="login"') ? { prompt: 'login', login, password: 'any' } : { prompt: 'consent' }
    } else throw new Error(`the provider answered ${response.status}: ${page.slice(0, 500)}`)
  }
  throw new Error('the provider leads in circles')
}
