/** The audit trail records sign-ins, and links of former owners stop working. */
import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { operatorToken, useControl } from '../support/control.ts'
import { newLink, newPerson, TestBrowser } from '../support/people.ts'
import { RawClient } from '../support/raw-http.ts'

const log: string[] = []
const control = useControl({ onLog: (line) => log.push(line) })
const password = 'correct horse battery'

const newBrowser = () => new TestBrowser(control())

async function eventsOf(operation: string) {
  const headers = { authorization: `Bearer ${operatorToken}` }
  const { body } = await control().call('GET', `/v1/installation/audit-events?operation=${operation}`, undefined, headers)
  return body.items
}

test('records who signed in, and who tried', async () => {
  const { account_id } = await control().newAccount()
  const person = await newPerson(control(), { account_id, role: 'owner' })
  const actor = `person:${person.person_id}`
  expect((await eventsOf('signInByLink'))[0]).toMatchObject({ actor, result: 'succeeded', address: expect.any(String) })
  const email = `ada-${newId()}@example.com`
  await person.send('POST', '/auth/set-up', { email, password })
  const other = newBrowser()
  await other.send('POST', '/auth/sign-in/email', { email, password: 'wrong horse battery' })
  expect((await eventsOf('signInByEmail'))[0]).toMatchObject({
    ...{ actor: 'unknown', result: 'failed', error: 'unauthorized', resource_id: person.person_id, account_id: null },
  })
  await other.send('POST', '/auth/sign-in/email', { email, password })
  expect((await eventsOf('signInByEmail'))[0]).toMatchObject({ actor, result: 'succeeded' })
  await other.send('POST', '/auth/sign-out')
  expect((await eventsOf('signOut'))[0]).toMatchObject({ actor, result: 'succeeded' })
})

test('says nothing different for an e-mail address that nobody has', async () => {
  const person = await newPerson(control(), {})
  const email = `eve-${newId()}@example.com`
  await person.send('POST', '/auth/set-up', { email, password })
  const answers = []
  for (const tried of [email, `nobody-${newId()}@example.com`])
    answers.push(await newBrowser().send('POST', '/auth/sign-in/email', { email: tried, password: 'wrong horse battery' }))
  const [known, unknown] = answers.map(({ status, body }) => ({ status, detail: body.detail }))
  expect(known).toEqual(unknown)
})

test('names an operator with a session, whose address the account does not learn', async () => {
  const { account_id, get } = await control().newAccount()
  const operator = await newPerson(control(), { is_operator: true })
  expect(await operator.send('PATCH', `/v1/accounts/${account_id}`, { weight: 2 })).toMatchObject({ status: 200 })
  const { body } = await get('/v1/audit-events?operation=changeAccount')
  expect(body.items[0]).toMatchObject({ actor: `person:${operator.person_id}`, address: null })
  expect((await eventsOf('changeAccount'))[0]).toMatchObject({ address: expect.any(String) })
})

test('links of somebody who owns the account no more let nobody in', async () => {
  const { account_id } = await control().newAccount()
  const owner = await newPerson(control(), { account_id, role: 'owner' })
  const leaving = await newPerson(control(), { account_id, role: 'owner' })
  const links = []
  for (const role of ['owner', 'viewer'])
    links.push(new URL((await leaving.send('POST', '/v1/invitations', { role })).body.url).hash.replace('#link=', ''))
  expect(await owner.send('PATCH', `/v1/people/${leaving.person_id}`, { role: 'viewer' })).toMatchObject({ status: 204 })
  for (const link of links) expect(await newBrowser().send('POST', '/auth/sign-in/link', { link })).toMatchObject({ status: 401 })
})

test('nobody invites who stops owning the account while the body arrives', async () => {
  const { account_id } = await control().newAccount()
  const owner = await newPerson(control(), { account_id, role: 'owner' })
  const leaving = await newPerson(control(), { account_id, role: 'owner' })
  const body = JSON.stringify({ role: 'owner' })
  const headers = { ...leaving.headers, 'Content-Type': 'application/json', 'Content-Length': String(body.length) }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  await using slow = await RawClient.connect(control().url)
  await slow.send(`POST /v1/invitations HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n${lines.join('')}\r\n`)
  expect(await slow.answer()).toMatchObject({ status: 100 })
  expect(await owner.send('PATCH', `/v1/people/${leaving.person_id}`, { role: 'viewer' })).toMatchObject({ status: 204 })
  await slow.send(body)
  expect(await slow.answer()).toMatchObject({ status: 403, json: { error: 'forbidden' } })
  expect((await owner.send('GET', '/v1/invitations')).body.items).toEqual([])
})

test('an invitation to a suspended account waits', async () => {
  const { account_id } = await control().newAccount()
  const owner = await newPerson(control(), { account_id, role: 'owner' })
  const { body } = await owner.send('POST', '/v1/invitations', { role: 'viewer' })
  const link = new URL(body.url).hash.replace('#link=', '')
  const setStatus = (status: string) =>
    control().call('PATCH', `/v1/accounts/${account_id}`, { status }, { authorization: `Bearer ${operatorToken}` })
  await setStatus('suspended')
  expect(await newBrowser().send('POST', '/auth/sign-in/link', { link })).toMatchObject({ status: 403 })
  await setStatus('active')
  expect(await newBrowser().send('POST', '/auth/sign-in/link', { link })).toMatchObject({ status: 200 })
})

test('a link of a start makes no operator once there are people', async () => {
  await newPerson(control(), {})
  const link = await newLink(control(), { is_operator: true, created_by: 'bootstrap' })
  expect(await newBrowser().send('POST', '/auth/sign-in/link', { link })).toMatchObject({ status: 401 })
})

test('an invitation for the address of somebody who exists stays usable', async () => {
  const { account_id } = await control().newAccount()
  const email = `grace-${newId()}@example.com`
  await newPerson(control(), { email })
  const link = await newLink(control(), { account_id, role: 'viewer', email })
  const answer = await newBrowser().send('POST', '/auth/sign-in/link', { link })
  expect(answer).toMatchObject({ status: 409, body: { detail: expect.stringContaining('exists already') } })
})

test('a page of another origin signs nobody in, and fills no log', async () => {
  const { account_id } = await control().newAccount()
  const link = await newLink(control(), { account_id, role: 'owner' })
  log.length = 0
  for (const origin of [
    'https://evil.test',
    'http://inlet.test.evil.test',
    'http://inlet.test:81',
    'https://inlet.test',
    'null',
  ]) {
    const answer = await newBrowser().send('POST', '/auth/sign-in/link', { link }, { origin })
    expect(answer).toMatchObject({ status: 403, body: { detail: expect.stringContaining('open http://inlet.test,') } })
  }
  expect(log.filter((line) => /"level":"(warn|error|fatal)"/.test(line))).toEqual([])
  expect(await newBrowser().send('POST', '/auth/sign-in/link', { link })).toMatchObject({ status: 200 })
})
