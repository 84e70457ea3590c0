/** Accounts that the operator creates are isolated: an id of another account returns 404 in every operation of the API. */
import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { clientOf, createAccount, operatorToken, type TestAccount, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { credentialsOf, newPerson } from '../support/people.ts'
import { anEndpointWithNode, aPublishedView } from '../support/set-up.ts'
import { aCommit, TestNode } from '../support/test-node.ts'

const control = useControl()

const definition = { columns: [{ name: 'event', type: 'VARCHAR', path: '$.event' }] }

async function furnished() {
  const account = await createAccount(control().call)
  const view = await aPublishedView(account, 'events', definition)
  const { region, destination, endpoint, node } = await anEndpointWithNode(control(), account)
  const { body: binding } = await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: view.id })
  const { body: shadow } = await account.post(`/v1/endpoints/${endpoint.id}/shadows`, { view_id: view.id })
  await node.call('POST', 'commits', { commits: [aCommit(node.id, endpoint.id, 0)] })
  const { body: job } = await account.post(`/v1/views/${view.id}/backfill`, { endpoint_id: endpoint.id })
  const { body: secret } = await account.post('/v1/secrets', { name: 'key' })
  const lost = await TestNode.register(control(), region)
  await lost.heartbeat({}, { lag: [aLag(endpoint.id)] })
  await clientOf(control().call, operatorToken).delete(`/v1/nodes/${lost.id}?force=true`)
  const [loss] = (await account.get('/v1/losses')).body.items
  const { account_id } = account
  const owner = await newPerson(control(), { account_id, role: 'owner' })
  const { body: invitation } = await owner.send('POST', '/v1/invitations', { role: 'viewer' })
  return { account, destination, view, endpoint, binding, shadow, job, secret, loss, owner, invitation }
}

type Operations = Record<string, { readonly operationId: string; readonly 'x-scope': string }>

type Furnished = Awaited<ReturnType<typeof furnished>>

/** Returns the id for a path parameter. */
function idOf(
  { account, destination, view, endpoint, binding, shadow, job, secret, loss, owner, invitation }: Furnished,
  template: string,
  parameter: string,
): string {
  if (parameter === 'binding_id') return binding.id
  if (parameter === 'shadow_id') return shadow.id
  if (parameter === 'endpoint_id' || template.startsWith('/v1/endpoints')) return endpoint.id
  if (template.startsWith('/v1/destinations')) return destination.id
  if (template.startsWith('/v1/keys')) return account.key_id
  if (template.startsWith('/v1/jobs')) return job.id
  if (template.startsWith('/v1/secrets')) return secret.id
  if (template.startsWith('/v1/losses')) return loss.id
  if (template.startsWith('/v1/people')) return owner.person_id
  if (template.startsWith('/v1/invitations')) return invitation.id
  return view.id
}

const bodies: Readonly<Record<string, (others: Furnished) => object>> = {
  attachView: ({ view }) => ({ view_id: view.id }),
  startShadow: ({ view }) => ({ view_id: view.id }),
  backfillView: ({ endpoint }) => ({ endpoint_id: endpoint.id }),
  redriveView: ({ endpoint }) => ({ endpoint_id: endpoint.id }),
  changeView: () => ({ definition }),
  changePerson: () => ({ role: 'viewer' }),
}

const state = async (account: TestAccount) => {
  const paths = ['/v1/destinations', '/v1/endpoints', '/v1/views?status=all', '/v1/keys', '/v1/jobs', '/v1/secrets', '/v1/losses']
  const bodies = await Promise.all(paths.map(async (path) => (await account.get(path)).body))
  // To read the state is to use a key, and a node that says nothing is told of with its time.
  const changing = new Set(['last_used_at', 'status_reasons'])
  return JSON.stringify(bodies, (name, value) => (changing.has(name) ? undefined : value))
}

describe('isolation of accounts', () => {
  test('every id of another account returns 404 as an unknown one does, and nothing changes there', async () => {
    const [mine, theirs] = [await furnished(), await furnished()]
    const before = await state(theirs.account)
    const { body: description } = await control().call('GET', '/openapi/openapi.json')
    const credentials = await credentialsOf(control(), mine.account)
    const walked = new Set<string>()
    for (const [template, methods] of Object.entries<Operations>(description.paths)) {
      // The operator's operations span all accounts, and reject their credentials (operator-accounts.test.ts, nodes.test.ts, join-tokens.test.ts).
      if (!template.includes('{') || /^\/v1\/(accounts|nodes|join-tokens)\b/.test(template)) continue
      for (const [method, { operationId, 'x-scope': scope }] of Object.entries(methods)) {
        const body = method === 'post' || method === 'patch' ? (bodies[operationId]?.(mine) ?? {}) : undefined
        for (const id of [(parameter: string) => idOf(theirs, template, parameter), newId]) {
          const path = template.replace(/\{(\w+)\}/g, (_, parameter) => id(parameter))
          const answer = await control().call(method.toUpperCase(), path, body, credentials(scope))
          expect(answer, `${operationId} ${path}`).toMatchObject({ status: 404, body: { error: 'not_found' } })
        }
        walked.add(operationId)
      }
    }
    expect(await state(theirs.account)).toBe(before)
    const all = Object.values<Operations>(description.paths).flatMap(Object.values)
    const others = all.map(({ operationId }) => operationId).filter((operationId) => !walked.has(operationId))
    // These have no id in their path. The tests below cover them.
    expect(others.toSorted()).toEqual([
      ...[
        'acceptInvitation',
        'changeAccount',
        'changeNode',
        'createAccount',
        'createAccountInvitation',
        'createDestination',
        'createEndpoint',
        'createInvitation',
        'createJoinToken',
        'createKey',
        'createSecret',
        'createView',
        'endOtherSessions',
        'exchangeToken',
      ],
      ...['getAccount', 'getAccountQuotas', 'getObjectStore', 'getQuotas', 'getSession', 'listAccounts', 'listAuditEvents'],
      ...[
        'listDestinations',
        'listEndpoints',
        'listInstallationAuditEvents',
        'listInstallationLosses',
        'listInvitations',
        'listJobs',
        'listJoinTokens',
        'listKeys',
        'listLosses',
        'listNodeSegments',
        'listNodes',
        'listPeople',
        'listRegions',
        'listSecrets',
        'listSessions',
        'listViewMetrics',
        'listViews',
        'previewView',
        'removeNode',
        'revokeJoinToken',
        'revokeNodeCredential',
        'runQuery',
        'suggestView',
      ],
    ])
  })

  test('ids of another account are rejected in bodies', async () => {
    const [mine, theirs] = [await furnished(), await furnished()]
    const destination_id = theirs.destination.id
    const path = `/v1/endpoints/${mine.endpoint.id}`
    expect(await mine.account.post('/v1/endpoints', { region: 'loc', destination_id })).toMatchObject({ status: 422 })
    expect(await mine.account.patch(path, { destination_id })).toMatchObject({ status: 422 })
    expect(await mine.account.post(`${path}/views`, { view_id: theirs.view.id })).toMatchObject({ status: 422 })
    expect(await mine.account.delete(`${path}/views/${theirs.binding.id}`)).toMatchObject({ status: 404 })
    const key = { name: 'device', scopes: ['ingest'], endpoint_ids: [theirs.endpoint.id] }
    expect(await mine.account.post('/v1/keys', key)).toMatchObject({ status: 422, body: { errors: [{ path: 'endpoint_ids' }] } })
  })

  test('lists and counts contain only the resources of the account', async () => {
    const [mine] = [await furnished(), await furnished()]
    for (const path of ['/v1/destinations', '/v1/endpoints', '/v1/views?status=all', '/v1/view-metrics']) {
      expect((await mine.account.get(path)).body).toMatchObject({ total: 1, items: [expect.anything()] })
    }
    expect((await mine.account.get('/v1/keys')).body).toMatchObject({ total: 1, items: [expect.anything()] })
    for (const status of ['deploying', 'active', 'degraded', 'failed', 'paused', 'draining']) {
      const { body } = await mine.account.get(`/v1/endpoints?status=${status}`)
      expect(body.items.map(({ id }: { id: string }) => id)).toEqual(body.total === 0 ? [] : [mine.endpoint.id])
    }
  })

  test('both accounts can use the same names', async () => {
    const [mine, theirs] = [await furnished(), await furnished()]
    expect(mine.view.name).toBe(theirs.view.name)
    expect(mine.view.version).toBe(1)
    const { body: next } = await mine.account.post(`/v1/views/${mine.view.id}/versions`)
    expect(next.version).toBe(2)
    expect((await theirs.account.get(`/v1/views/${theirs.view.id}`)).body.versions).toHaveLength(1)
    expect(mine.destination.name).toBe(theirs.destination.name)
  })
})
