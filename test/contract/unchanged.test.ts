import { describe, expect, test } from 'vitest'
import { newRegion, useControl } from '../support/control.ts'

const control = useControl()

/** Asks with an access token, and names what the client has. */
async function asked() {
  const account = await control().newAccount()
  const { body } = await control().call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'admin' })
  const authorization = `Bearer ${body.access_token}`
  const ask = (path: string, known?: string, method = 'GET') =>
    control().call(method, path, undefined, { authorization, ...(known === undefined ? {} : { 'if-none-match': known }) })
  return { account, ask }
}

describe('GET with If-None-Match', () => {
  test('304 without a body while nothing changed, 200 after a change', async () => {
    const { account, ask } = await asked()
    const first = await ask('/v1/endpoints')
    const tag = first.headers.get('etag') ?? ''
    expect(tag).toMatch(/^"[\w-]+"$/)
    expect(first.headers.get('cache-control')).toBe('private, no-cache')

    const same = await ask('/v1/endpoints', tag)
    expect(same).toMatchObject({ status: 304, body: '' })
    expect(same.headers.get('etag')).toBe(tag)
    expect(same.headers.get('content-type')).toBeNull()

    await account.post('/v1/endpoints', { region: newRegion() })
    const changed = await ask('/v1/endpoints', tag)
    expect(changed).toMatchObject({ status: 200, body: { total: 1 } })
    expect(changed.headers.get('etag')).not.toBe(tag)
  })

  test.each([
    ['one of several', (tag: string) => `"other", ${tag}`],
    ['one that a proxy made weak', (tag: string) => `W/${tag}`],
    ['any', () => '*'],
  ])('304 for %s', async (_name, known) => {
    const { ask } = await asked()
    const { headers } = await ask('/v1/views')
    expect(await ask('/v1/views', known(headers.get('etag') ?? ''))).toMatchObject({ status: 304 })
  })

  test('HEAD has the tag of GET', async () => {
    const { ask } = await asked()
    const { headers } = await ask('/v1/views')
    const tag = headers.get('etag') ?? ''
    expect((await ask('/v1/views', undefined, 'HEAD')).headers.get('etag')).toBe(tag)
    expect(await ask('/v1/views', tag, 'HEAD')).toMatchObject({ status: 304 })
  })

  test('an error and a change have no tag', async () => {
    const { account, ask } = await asked()
    expect((await ask('/v1/endpoints?limit=0')).headers.get('etag')).toBeNull()
    expect((await account.post('/v1/endpoints', { region: newRegion() })).headers.get('etag')).toBeNull()
  })
})
