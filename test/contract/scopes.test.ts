/** The credential that opens each operation, and what every other one gets: 401 if it is none, 403 if it is not enough. */
import { beforeAll, describe, expect, test } from 'vitest'
import { scopes as tokenScopes } from '#model/api-key.ts'
import { newId } from '#model/id.ts'
import { type ApiClient, clientOf, nodeToken, operatorToken, type TestAccount, useControl } from '../support/control.ts'

const control = useControl()

/** By scope. The files of these operations do not repeat it. */
const operations: Readonly<Record<string, readonly string[]>> = {
  public: ['exchangeToken'],
  any: ['listBindings', 'listEndpoints', 'listRegions', 'listShadows', 'listViews', 'previewView', 'suggestView'],
  metrics: [
    ...['getReceipt', 'listLosses'],
    ...['getDestination', 'getEndpoint', 'getEndpointSeries', 'getJob', 'getObjectStore', 'getQuotas', 'getView'],
    ...['getViewMetrics', 'getViewSeries', 'listCommits', 'listDestinations', 'listDlqFiles', 'listJobs', 'listPeople'],
    'listViewMetrics',
  ],
  // Their responses contain payloads.
  query: ['compareView', 'listCommitFiles', 'listDlqReasons', 'listDlqRecords', 'listRecords', 'runQuery'],
  admin: [
    ...['archiveView', 'attachView', 'backfillView', 'cancelJob', 'changeDestination', 'changeEndpoint', 'changeView'],
    ...['compactEndpoint', 'createDestination', 'createEndpoint', 'createKey', 'createSecret', 'createView'],
    ...['createViewVersion', 'deleteDestination', 'deleteEndpoint', 'deleteSecret', 'deleteView', 'detachView'],
    ...['listAuditEvents', 'listKeys', 'listSecrets', 'pauseEndpoint', 'pauseJob', 'publishView', 'redriveView'],
    ...['resumeEndpoint', 'resumeJob', 'revokeKey', 'rotateSecret', 'sendTestEvent', 'validateDestination'],
    ...['startShadow', 'endShadow', 'confirmLoss'],
  ],
  owner: ['changePerson', 'createInvitation', 'listInvitations', 'removePerson', 'revokeInvitation'],
  person: ['acceptInvitation', 'endOtherSessions', 'endSession', 'getSession', 'listSessions'],
  operator: [
    ...[
      'changeAccount',
      'changeNode',
      'createAccount',
      'createAccountInvitation',
      'createJoinToken',
      'getAccount',
      'getAccountQuotas',
    ],
    ...['listAccounts', 'listInstallationAuditEvents', 'listJoinTokens', 'listNodeSegments', 'listNodes', 'removeNode'],
    ...['revokeJoinToken', 'revokeNodeCredential', 'listInstallationLosses', 'confirmInstallationLoss'],
  ],
}

/** The scopes of tokens that open an operation. */
const sufficient: Readonly<Record<string, readonly string[]>> = {
  any: ['ingest', 'metrics', 'query', 'admin'],
  metrics: ['metrics', 'admin'],
  query: ['query', 'admin'],
  admin: ['admin'],
}

type Operation = { readonly scope: string; readonly method: string; readonly path: string }

const described = new Map<string, Operation>()
let account: TestAccount
beforeAll(async () => {
  account = await control().newAccount()
  const { body } = await control().call('GET', '/openapi/openapi.json')
  for (const [template, methods] of Object.entries<Record<string, { operationId: string; 'x-scope': string }>>(body.paths))
    for (const [method, { operationId, 'x-scope': scope }] of Object.entries(methods))
      described.set(operationId, { scope, method, path: template.replace(/\{\w+\}/g, newId()) })
})

/** Calls an operation with ids that do not exist, and without what it needs, so that no call changes anything. */
async function callWith(client: ApiClient, { method, path }: Operation): Promise<number> {
  const { status } = await client[method as 'get' | 'post' | 'patch' | 'delete'](path, {})
  return status
}

const isOpen = (status: number) => status !== 401 && status !== 403

test('every operation has the scope that this file says', () => {
  const byScope = Map.groupBy(described.keys(), (id) => described.get(id)?.scope ?? '')
  expect(Object.fromEntries([...byScope].map(([scope, ids]) => [scope, ids.toSorted()]))).toEqual(
    Object.fromEntries(Object.entries(operations).map(([scope, ids]) => [scope, ids.toSorted()])),
  )
})

describe.each(Object.keys(operations).filter((scope) => scope !== 'public'))('an operation of scope %s', (scope) => {
  const all = () => [...described].filter(([, operation]) => operation.scope === scope)

  test('401 without a credential, and with one that is none', async () => {
    const wrong = [undefined, 'wrong', 'a.b.c', nodeToken, ...(scope === 'operator' ? [] : [account.api_key, operatorToken])]
    for (const [id, operation] of all())
      for (const token of wrong)
        expect(await callWith(clientOf(control().call, token), operation), `${id} with ${token}`).toBe(401)
  })

  test('403 with a token of another scope; one that is sufficient opens it', async () => {
    // A token opens nothing that only people do.
    const refused = scope === 'owner' || scope === 'person' ? 401 : 403
    for (const [id, operation] of all())
      for (const held of tokenScopes) {
        const status = await callWith(account.as(held), operation)
        if (sufficient[scope]?.includes(held)) expect(isOpen(status), `${id} with ${held}: ${status}`).toBe(true)
        else expect(status, `${id} with ${held}`).toBe(refused)
      }
  })
})

test('the operator token opens the operations of its scope; an API key does not', async () => {
  for (const [id, operation] of described) {
    if (operation.scope !== 'operator') continue
    const status = await callWith(clientOf(control().call, operatorToken), operation)
    expect(isOpen(status), `${id}: ${status}`).toBe(true)
    expect(await callWith(clientOf(control().call, account.api_key), operation), id).toBe(403)
  }
})
