/** Each role may call its operations, of all that the OpenAPI description has. */
import { beforeAll, describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { type TestAccount, useControl } from '../support/control.ts'
import { newPerson, type TestBrowser } from '../support/people.ts'

const control = useControl()

type Operation = { readonly id: string; readonly scope: string; readonly method: string; readonly path: string }

const operations: Operation[] = []
let account: TestAccount
beforeAll(async () => {
  account = await control().newAccount()
  const { body } = await control().call('GET', '/openapi/openapi.json')
  for (const [template, methods] of Object.entries<Record<string, { operationId: string; 'x-scope': string }>>(body.paths))
    for (const [method, { operationId: id, 'x-scope': scope }] of Object.entries(methods))
      operations.push({ id, scope, method: method.toUpperCase(), path: template.replace(/\{\w+\}/g, newId()) })
})

/** Operations that only read, although they are a POST. */
const lookingPosts = ['compareView', 'previewView', 'runQuery', 'suggestView']
const isLook = ({ id, method }: Operation) => method === 'GET' || lookingPosts.includes(id)

async function expectRefused(browser: TestBrowser, allowed: (operation: Operation) => boolean): Promise<string[]> {
  const refused: string[] = []
  for (const operation of operations) {
    const { id, scope, method, path } = operation
    if (scope === 'person' || scope === 'public' || allowed(operation)) continue
    const answer = await browser.send(method, path, method === 'GET' || method === 'DELETE' ? undefined : {})
    expect(answer, id).toMatchObject({ status: 403, body: { error: 'forbidden' } })
    refused.push(id)
  }
  return refused
}

describe('a session', () => {
  test('of a viewer changes nothing and sees no secrets', async () => {
    const viewer = await newPerson(control(), { account_id: account.account_id, role: 'viewer' })
    const refused = await expectRefused(viewer, (operation) => ['metrics', 'query', 'any'].includes(operation.scope))
    expect(refused.length).toBeGreaterThan(40)
    // All other operations only read.
    const left = operations.filter(({ id, scope }) => !refused.includes(id) && scope !== 'person' && scope !== 'public')
    expect(left.filter((operation) => !isLook(operation)).map(({ id }) => id)).toEqual([])
    const own = operations.filter(({ scope, method }) => scope === 'person' && method !== 'GET').map(({ id }) => id)
    expect(own.toSorted()).toEqual(['acceptInvitation', 'endOtherSessions', 'endSession'])
  })

  test('of a member does not decide who belongs to the account, nor operates', async () => {
    const member = await newPerson(control(), { account_id: account.account_id, role: 'member' })
    const refused = await expectRefused(member, ({ scope }) => scope !== 'owner' && scope !== 'operator')
    expect(refused).toEqual(
      expect.arrayContaining(['changePerson', 'removePerson', 'createInvitation', 'createAccountInvitation']),
    )
  })

  test('of an owner does not operate, and opens nothing of another account', async () => {
    const owner = await newPerson(control(), { account_id: account.account_id, role: 'owner' })
    await expectRefused(owner, ({ scope }) => scope !== 'operator')
    const { account_id: other } = await control().newAccount()
    for (const { id, scope, method, path } of operations) {
      if (['person', 'public', 'operator'].includes(scope)) continue
      const answer = await owner.send(method, path, method === 'GET' || method === 'DELETE' ? undefined : {}, {
        'inlet-account': other,
      })
      expect(answer, id).toMatchObject({ status: 403, body: { detail: 'you do not belong to this account' } })
    }
  })

  test('of an operator opens no account by that', async () => {
    const operator = await newPerson(control(), { is_operator: true })
    for (const { id, scope, method, path } of operations) {
      if (['person', 'public', 'operator'].includes(scope)) continue
      const headers = { 'inlet-account': account.account_id }
      const answer = await operator.send(method, path, method === 'GET' || method === 'DELETE' ? undefined : {}, headers)
      expect(answer, id).toMatchObject({ status: 403 })
    }
  })

  test('that has ended, or a cookie without the header, opens nothing', async () => {
    const gone = await newPerson(control(), { account_id: account.account_id, role: 'owner' })
    const { cookie } = gone
    for (const { id, scope, method, path } of operations) {
      if (scope === 'public') continue
      const body = method === 'GET' || method === 'DELETE' ? undefined : {}
      expect(await control().call(method, path, body, { cookie }), id).toMatchObject({ status: 401 })
    }
    await gone.send('POST', '/auth/sign-out')
    for (const { id, scope, method, path } of operations) {
      if (scope === 'public') continue
      const body = method === 'GET' || method === 'DELETE' ? undefined : {}
      expect(await gone.send(method, path, body, { cookie }), id).toMatchObject({ status: 401 })
    }
  })
})
