import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { Account, ChangeAccount, CreateAccount, CreatedAccount } from '#model/account.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import { CreatedInvitation, Invite } from '#model/person.ts'
import { QuotaUse } from '#model/quota.ts'
import type { Accounts } from '../../resources/accounts.ts'
import type { People } from '../../resources/people.ts'
import type { Quotas } from '../../resources/quotas.ts'
import { problem } from '../openapi/openapi.ts'
import { ById } from './parameters.ts'
import { type ResourceApp, resource } from './resource.ts'

const notFound = problem('there is no such account')
const conflict = problem('another account has this name')

/** The operator's view of the accounts. */
export function accountRoutes(accounts: Accounts, quotas: Quotas, people: People): FastifyPluginCallbackZod {
  return resource('Accounts', (app) => {
    addAccounts(app, accounts)
    addMembership(app, quotas, people)
  })
}

function addAccounts(app: ResourceApp, accounts: Accounts): void {
  app.post(
    '/accounts',
    {
      config: { scope: 'operator' },
      schema: {
        operationId: 'createAccount',
        summary: 'Create an account and its first API key; only this response contains the secret',
        body: CreateAccount,
        response: { 201: CreatedAccount, 409: conflict },
      },
    },
    (request, reply) => {
      reply.header('cache-control', 'no-store')
      return accounts.create(request.body)
    },
  )

  app.get(
    '/accounts',
    {
      config: { scope: 'operator' },
      schema: {
        operationId: 'listAccounts',
        summary: 'List accounts, newest first',
        querystring: PageQuery,
        response: { 200: pageOf(Account) },
      },
    },
    (request) => accounts.list(request.query),
  )

  app.get(
    '/accounts/:id',
    {
      config: { scope: 'operator' },
      schema: {
        operationId: 'getAccount',
        summary: 'Get an account',
        params: ById,
        response: { 200: Account, 404: notFound },
      },
    },
    (request) => accounts.get(request.params.id),
  )

  app.patch(
    '/accounts/:id',
    {
      config: { scope: 'operator' },
      schema: {
        operationId: 'changeAccount',
        summary: 'Rename, suspend or resume an account, or change its weight, quotas and buckets',
        params: ById,
        body: ChangeAccount,
        response: { 200: Account, 404: notFound, 409: conflict },
      },
    },
    (request) => accounts.change(request.params.id, request.body),
  )
}

function addMembership(app: ResourceApp, quotas: Quotas, people: People): void {
  app.get(
    '/accounts/:id/quotas',
    {
      config: { scope: 'operator' },
      schema: {
        operationId: 'getAccountQuotas',
        summary: 'Get the quotas of an account and how much of them is used',
        params: ById,
        response: { 200: QuotaUse, 404: notFound },
      },
    },
    (request) => quotas.get(request.params.id),
  )

  app.post(
    '/accounts/:id/invitations',
    {
      config: { scope: 'operator' },
      schema: {
        operationId: 'createAccountInvitation',
        summary: 'Create a link with which somebody joins an account, such as its first owner; only this response contains it',
        params: ById,
        body: Invite,
        response: { 201: CreatedInvitation, 404: notFound, 409: problem('the account has too many open invitations') },
      },
    },
    ({ params, signedIn, body }, reply) => {
      reply.header('cache-control', 'no-store')
      return people.inviteTo(params.id, signedIn, body)
    },
  )
}
