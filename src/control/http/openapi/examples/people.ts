import { actor, at, type Examples, id, ids } from './shared.ts'

const invitation = {
  id: ids.invitation,
  email: 'grace@example.com',
  role: 'member',
  created_by: `person:${ids.person}`,
  created_at: at,
  expires_at: at,
}

const session = {
  ...{ id: ids.session, is_current: true, address: '203.0.113.7' },
  user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0',
  ...{ created_at: at, last_seen_at: at, expires_at: at },
}

const auditEvent = {
  ...{
    id: id('a7'),
    at,
    account_id: ids.account,
    actor,
    actor_name: 'Ada Lovelace',
    address: '203.0.113.7',
    operation: 'createKey',
    resource_id: ids.key,
  },
  resource_name: 'thermometer',
  ...{ result: 'succeeded', status: 201, error: null, request_id: id('a8'), unrecorded: 0 },
}

export const peopleExamples: Examples = {
  getSession: {
    response: {
      id: ids.session,
      person: { id: ids.person, name: 'Ada Lovelace', email: 'ada@example.com', is_operator: true },
      accounts: [{ account_id: ids.account, account_name: 'default', role: 'owner' }],
      allows_public_keys: false,
      expires_at: at,
    },
  },
  listSessions: { response: { items: [session] } },
  acceptInvitation: {
    request: { link: '0aZ9bY8cX7dW6eV5fU4gT3hS2iR1jQ0k' },
    response: { account_id: ids.account, account_name: 'default', role: 'member' },
  },
  listPeople: {
    response: {
      items: [{ id: ids.person, name: 'Ada Lovelace', email: 'ada@example.com', role: 'owner', joined_at: at, last_seen_at: at }],
    },
  },
  changePerson: { request: { role: 'member' } },
  createInvitation: {
    request: { role: 'member', email: 'grace@example.com' },
    response: { ...invitation, url: 'https://inlet.example.com/sign-in#link=0aZ9bY8cX7dW6eV5fU4gT3hS2iR1jQ0k' },
  },
  createAccountInvitation: {
    request: { role: 'owner', email: 'grace@example.com' },
    response: {
      ...{ ...invitation, role: 'owner', created_by: 'operator' },
      url: 'https://inlet.example.com/sign-in#link=0aZ9bY8cX7dW6eV5fU4gT3hS2iR1jQ0k',
    },
  },
  listInvitations: { response: { items: [invitation] } },
  listAuditEvents: { response: { items: [auditEvent], next_cursor: auditEvent.id } },
  listInstallationAuditEvents: { response: { items: [auditEvent], next_cursor: null } },
}
