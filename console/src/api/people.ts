import { queryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'
import { slowMs } from './intervals.ts'
import type { Role } from './session.ts'

export type Person = Schemas['Person']
export type Invitation = Schemas['Invitation']
export type CreatedInvitation = Schemas['CreatedInvitation']

export const peopleQuery = (account: string) =>
  queryOptions({
    queryKey: [account, 'people'],
    queryFn: async () => (await ok(client.GET('/v1/people'))).items,
    refetchInterval: slowMs,
  })

/** Returns the name of who did something, as the API writes it; what it writes if that is no person of the account. */
export function nameOfActor(people: readonly Person[] | undefined, actor: string): string {
  return people?.find(({ id }) => actor === `person:${id}`)?.name ?? actor
}

export const invitationsQuery = (account: string) =>
  queryOptions({
    queryKey: [account, 'invitations'],
    queryFn: async () => (await ok(client.GET('/v1/invitations'))).items,
    refetchInterval: slowMs,
  })

export function changeRole(id: string, role: Role): Promise<unknown> {
  return ok(client.PATCH('/v1/people/{id}', { params: { path: { id } }, body: { role } }))
}

export function removePerson(id: string): Promise<unknown> {
  return ok(client.DELETE('/v1/people/{id}', { params: { path: { id } } }))
}

export function invite(role: Role, email: string): Promise<CreatedInvitation> {
  return ok(client.POST('/v1/invitations', { body: { role, email: email === '' ? null : email } }))
}

export function revokeInvitation(id: string): Promise<unknown> {
  return ok(client.DELETE('/v1/invitations/{id}', { params: { path: { id } } }))
}

export function acceptInvitation(link: string): Promise<Schemas['Membership']> {
  return ok(client.POST('/v1/accepted-invitations', { body: { link } }))
}
