import type { FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import type { SignedIn } from '#auth/sign-in.ts'
import { must } from '#lib/assert.ts'
import {
  AcceptInvitation,
  ChangePerson,
  CreatedInvitation,
  Invitation,
  Invite,
  Membership,
  OpenSession,
  Person,
  Session,
} from '#model/person.ts'
import type { People } from '../../resources/people.ts'
import { problem } from '../openapi/openapi.ts'
import { ById, Empty } from './parameters.ts'
import { type ResourceApp, resource } from './resource.ts'

const noPerson = problem('nobody with this id belongs to the account')
const lastOwner = problem('the account would have no owner')

export function sessionRoutes(people: People): FastifyPluginCallbackZod {
  return resource('People', (app) => {
    app.get(
      '/session',
      {
        config: { scope: 'person' },
        schema: { operationId: 'getSession', summary: 'Get who is signed in, and their accounts', response: { 200: Session } },
      },
      (request) => people.session(signedInOf(request)),
    )
  })
}

export function ownSessionRoutes(people: People): FastifyPluginCallbackZod {
  return resource('People', (app) => {
    app.get(
      '/sessions',
      {
        config: { scope: 'person' },
        schema: {
          operationId: 'listSessions',
          summary: 'List the browsers in which you are signed in, the last seen first',
          response: { 200: z.object({ items: z.array(OpenSession) }) },
        },
      },
      (request) => people.sessions(signedInOf(request)),
    )

    app.delete(
      '/sessions',
      {
        config: { scope: 'person' },
        schema: {
          operationId: 'endOtherSessions',
          summary: 'End all your sessions but this one',
          response: { 204: Empty },
        },
      },
      async (request, reply) => {
        await people.endOtherSessions(signedInOf(request))
        return reply.code(204).send()
      },
    )

    app.delete(
      '/sessions/:id',
      {
        config: { scope: 'person' },
        schema: {
          operationId: 'endSession',
          summary: 'End one of your sessions',
          params: ById,
          response: { 204: Empty, 404: problem('you have no such session, or it has ended') },
        },
      },
      async (request, reply) => {
        await people.endSession(signedInOf(request), request.params.id)
        return reply.code(204).send()
      },
    )

    app.post(
      '/accepted-invitations',
      {
        config: { scope: 'person' },
        schema: {
          operationId: 'acceptInvitation',
          summary: 'Join one more account with the link of an invitation',
          body: AcceptInvitation,
          response: {
            200: Membership,
            404: problem('the invitation was used, revoked, or is too old'),
            409: problem('you belong to the account already'),
          },
        },
      },
      (request) => people.accept(signedInOf(request), request.body),
    )
  })
}

function signedInOf({ signedIn }: FastifyRequest): SignedIn {
  return must(signedIn, 'a session')
}

export function peopleRoutes(people: People): FastifyPluginCallbackZod {
  return resource('People', (app) => {
    addPeople(app, people)
    addInvitations(app, people)
  })
}

function addPeople(app: ResourceApp, people: People): void {
  app.get(
    '/people',
    {
      // E-mail addresses are not for senders.
      config: { scope: 'metrics' },
      schema: {
        operationId: 'listPeople',
        summary: 'List who belongs to the account, in the order in which they joined',
        response: { 200: z.object({ items: z.array(Person) }) },
      },
    },
    (request) => people.list(request.principal),
  )

  app.patch(
    '/people/:id',
    {
      config: { scope: 'owner' },
      schema: {
        operationId: 'changePerson',
        summary: 'Change the role of somebody in the account',
        params: ById,
        body: ChangePerson,
        response: { 204: Empty, 404: noPerson, 409: lastOwner },
      },
    },
    async ({ principal, params, body }, reply) => {
      await people.change(principal, params.id, body)
      return reply.code(204).send()
    },
  )

  app.delete(
    '/people/:id',
    {
      config: { scope: 'owner' },
      schema: {
        operationId: 'removePerson',
        summary: 'Take somebody out of the account; the person stays in others',
        params: ById,
        response: { 204: Empty, 404: noPerson, 409: lastOwner },
      },
    },
    async ({ principal, params }, reply) => {
      await people.remove(principal, params.id)
      return reply.code(204).send()
    },
  )
}

function addInvitations(app: ResourceApp, people: People): void {
  app.post(
    '/invitations',
    {
      config: { scope: 'owner' },
      schema: {
        operationId: 'createInvitation',
        summary: 'Create a link with which somebody joins the account; only this response contains it',
        body: Invite,
        response: { 201: CreatedInvitation, 409: problem('the account has too many open invitations') },
      },
    },
    (request, reply) => {
      reply.header('cache-control', 'no-store')
      return people.invite(request.principal, request.body)
    },
  )

  app.get(
    '/invitations',
    {
      config: { scope: 'owner' },
      schema: {
        operationId: 'listInvitations',
        summary: 'List the invitations that can still be used, newest first',
        response: { 200: z.object({ items: z.array(Invitation) }) },
      },
    },
    (request) => people.invitations(request.principal),
  )

  app.delete(
    '/invitations/:id',
    {
      config: { scope: 'owner' },
      schema: {
        operationId: 'revokeInvitation',
        summary: 'Revoke an invitation',
        params: ById,
        response: { 204: Empty, 404: problem('there is no such invitation, or it was used') },
      },
    },
    async ({ principal, params }, reply) => {
      await people.revokeInvitation(principal, params.id)
      return reply.code(204).send()
    },
  )
}
