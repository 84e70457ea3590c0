import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { Account, ChangeAccount, CreateAccount, CreatedAccount } from '#model/account.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import { CreatedInvitation, Invite } from '#model/person.ts'
import { QuotaUse } from '#model/quota.ts'
import type { Accounts } from '../../resources/accounts.ts'
import type { People } from '../../resources/people.ts'
import type { Quotas } from '../../resources/quotas.ts'
import { problem } from '../openapi/openapi.ts'
import { type AddOperation, resource } from './resource.ts'

const notFound = problem('there is no such account')
const conflict = problem('another account has this name')

/** The operator's view of the accounts. */
export function accountRoutes(accounts: Accounts, quotas: Quotas, people: People): FastifyPluginCallbackZod {
  return resource('Accounts', (operation) => {
    addAccounts(operation, accounts)
    addMembership(operation, quotas, people)
  })
}

function addAccounts(operation: AddOperation, accounts: Accounts): void {
  operation('POST /accounts', 'createAccount', 'operator', {
    summary: 'Create an account and its first API key; only this response contains the secret',
    body: CreateAccount,
    response: { 201: CreatedAccount, 409: conflict },
    noStore: true,
    run: (request) => accounts.create(request.body),
  })

  operation('GET /accounts', 'listAccounts', 'operator', {
    summary: 'List accounts, newest first',
    query: PageQuery,
    response: { 200: pageOf(Account) },
    run: (request) => accounts.list(request.query),
  })

  operation('GET /accounts/:id', 'getAccount', 'operator', {
    summary: 'Get an account',
    response: { 200: Account, 404: notFound },
    run: (request) => accounts.get(request.params.id),
  })

  operation('PATCH /accounts/:id', 'changeAccount', 'operator', {
    summary: 'Rename, suspend or resume an account, or change its weight, quotas and buckets',
    body: ChangeAccount,
    response: { 200: Account, 404: notFound, 409: conflict },
    run: (request) => accounts.change(request.params.id, request.body),
  })
}

function addMembership(operation: AddOperation, quotas: Quotas, people: People): void {
  operation('GET /accounts/:id/quotas', 'getAccountQuotas', 'operator', {
    summary: 'Get the quotas of an account and how much of them is used',
    response: { 200: QuotaUse, 404: notFound },
    run: (request) => quotas.get(request.params.id),
  })

  operation('POST /accounts/:id/invitations', 'createAccountInvitation', 'operator', {
    summary: 'Create a link with which somebody joins an account, such as its first owner; only this response contains it',
    body: Invite,
    response: { 201: CreatedInvitation, 404: notFound, 409: problem('the account has too many open invitations') },
    noStore: true,
    run: ({ params, signedIn, body }) => people.inviteTo(params.id, signedIn, body),
  })
}
