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
import { type AddOperation, Empty, resource } from './resource.ts'

const noPerson = problem('nobody with this id belongs to the account')
const lastOwner = problem('the account would have no owner')

export function sessionRoutes(people: People): FastifyPluginCallbackZod {
  return resource('People', (operation) => {
    operation('GET /session', 'getSession', 'person', {
      summary: 'Get who is signed in, and their accounts',
      response: { 200: Session },
      run: (request) => people.session(signedInOf(request)),
    })
  })
}

export function ownSessionRoutes(people: People): FastifyPluginCallbackZod {
  return resource('People', (operation) => {
    operation('GET /sessions', 'listSessions', 'person', {
      summary: 'List the browsers in which you are signed in, the last seen first',
      response: { 200: z.object({ items: z.array(OpenSession) }) },
      run: (request) => people.sessions(signedInOf(request)),
    })

    operation('DELETE /sessions', 'endOtherSessions', 'person', {
      summary: 'End all your sessions but this one',
      response: { 204: Empty },
      run: (request) => people.endOtherSessions(signedInOf(request)),
    })

    operation('DELETE /sessions/:id', 'endSession', 'person', {
      summary: 'End one of your sessions',
      response: { 204: Empty, 404: problem('you have no such session, or it has ended') },
      run: (request) => people.endSession(signedInOf(request), request.params.id),
    })

    operation('POST /accepted-invitations', 'acceptInvitation', 'person', {
      summary: 'Join one more account with the link of an invitation',
      body: AcceptInvitation,
      response: {
        200: Membership,
        404: problem('the invitation was used, revoked, or is too old'),
        409: problem('you belong to the account already'),
      },
      run: (request) => people.accept(signedInOf(request), request.body),
    })
  })
}

function signedInOf({ signedIn }: FastifyRequest): SignedIn {
  return must(signedIn, 'a session')
}

export function peopleRoutes(people: People): FastifyPluginCallbackZod {
  return resource('People', (operation) => {
    addPeople(operation, people)
    addInvitations(operation, people)
  })
}

function addPeople(operation: AddOperation, people: People): void {
  operation('GET /people', 'listPeople', 'metrics', {
    // E-mail addresses are not for senders.
    summary: 'List who belongs to the account, in the order in which they joined',
    response: { 200: z.object({ items: z.array(Person) }) },
    run: (request) => people.list(request.principal),
  })

  operation('PATCH /people/:id', 'changePerson', 'owner', {
    summary: 'Change the role of somebody in the account',
    body: ChangePerson,
    response: { 204: Empty, 404: noPerson, 409: lastOwner },
    run: ({ principal, params, body }) => people.change(principal, params.id, body),
  })

  operation('DELETE /people/:id', 'removePerson', 'owner', {
    summary: 'Take somebody out of the account; the person stays in others',
    response: { 204: Empty, 404: noPerson, 409: lastOwner },
    run: ({ principal, params }) => people.remove(principal, params.id),
  })
}

function addInvitations(operation: AddOperation, people: People): void {
  operation('POST /invitations', 'createInvitation', 'owner', {
    summary: 'Create a link with which somebody joins the account; only this response contains it',
    body: Invite,
    response: { 201: CreatedInvitation, 409: problem('the account has too many open invitations') },
    noStore: true,
    run: (request) => people.invite(request.principal, request.body),
  })

  operation('GET /invitations', 'listInvitations', 'owner', {
    summary: 'List the invitations that can still be used, newest first',
    response: { 200: z.object({ items: z.array(Invitation) }) },
    run: (request) => people.invitations(request.principal),
  })

  operation('DELETE /invitations/:id', 'revokeInvitation', 'owner', {
    summary: 'Revoke an invitation',
    response: { 204: Empty, 404: problem('there is no such invitation, or it was used') },
    run: ({ principal, params }) => people.revokeInvitation(principal, params.id),
  })
}
