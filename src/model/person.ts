import { z } from 'zod'
import type { Scope } from './api-key.ts'
import { Id } from './id.ts'
import { signInLimits } from './limits.ts'
import { properName } from './text.ts'
import { Timestamp } from './timestamp.ts'

/** Roles of a person in an account, which decide what they may do. */
export const roles = ['owner', 'member', 'viewer'] as const
export const Role = z.enum(roles).meta({
  description:
    '`owner`: everything, also who belongs to the account; `member`: everything else; `viewer`: looks, and changes nothing',
})
export type Role = z.infer<typeof Role>

/** The scopes of the management API that a role holds. */
export const scopesOfRole: Readonly<Record<Role, readonly Scope[]>> = {
  owner: ['admin', 'metrics', 'query'],
  member: ['admin', 'metrics', 'query'],
  viewer: ['metrics', 'query'],
}

export const PersonName = properName(128).meta({ examples: ['Ada Lovelace'] })
export const Email = z
  .email('must be an e-mail address')
  .max(254)
  .toLowerCase()
  .meta({ examples: ['ada@example.com'] })

export const Membership = z.object({ account_id: Id, account_name: z.string(), role: Role })
export type Membership = z.infer<typeof Membership>

/** The signed-in person, and what the installation offers. */
export const Session = z.object({
  id: Id,
  person: z.object({
    id: Id,
    name: z.string(),
    email: z.string().nullable().meta({ description: 'null until the person has set one' }),
    is_operator: z.boolean().meta({ description: 'whether the person may call the operations of the operator' }),
  }),
  accounts: z.array(Membership).meta({ description: 'in the order of their names' }),
  allows_public_keys: z
    .boolean()
    .meta({ description: 'whether the operator allows keys that web pages hold (`INLET_PUBLIC_KEYS`)' }),
  expires_at: Timestamp,
})
export type Session = z.infer<typeof Session>

/** A browser in which the person is signed in. */
export const OpenSession = z.object({
  id: Id,
  is_current: z.boolean().meta({ description: 'whether it is the session of this call' }),
  address: z.string().nullable().meta({ description: 'from where the person signed in, as control saw it' }),
  user_agent: z.string().nullable().meta({ description: 'what the browser called itself' }),
  created_at: Timestamp,
  last_seen_at: Timestamp.meta({ description: 'when it was last extended, to the hour' }),
  expires_at: Timestamp,
})
export type OpenSession = z.infer<typeof OpenSession>

export const AcceptInvitation = z.strictObject({
  link: z
    .string()
    .min(1)
    .max(signInLimits.linkChars)
    .meta({ description: 'what stands after `#link=` in the link', examples: ['7Qn3vXk2TzYb9LmR4sWcD8fGhJpA1eUo'] }),
})
export type AcceptInvitation = z.infer<typeof AcceptInvitation>

/** Somebody who belongs to an account. */
export const Person = z.object({
  id: Id,
  name: z.string(),
  email: z.string().nullable(),
  role: Role,
  joined_at: Timestamp,
  last_seen_at: Timestamp.nullable().meta({ description: 'when the newest session was last extended; null without a session' }),
})
export type Person = z.infer<typeof Person>

export const ChangePerson = z.strictObject({ role: Role })
export type ChangePerson = z.infer<typeof ChangePerson>

export const Invite = z.strictObject({
  role: Role,
  email: Email.nullable().default(null).meta({ description: 'whom the link is for; whoever has the link can use it' }),
})
export type Invite = z.infer<typeof Invite>

export const Invitation = z.object({
  id: Id,
  email: z.string().nullable(),
  role: Role,
  created_by: z.string(),
  created_at: Timestamp,
  expires_at: Timestamp,
})
export type Invitation = z.infer<typeof Invitation>

export const CreatedInvitation = Invitation.extend({
  url: z.string().meta({ description: 'opens the console and works once; returned only now' }),
})
export type CreatedInvitation = z.infer<typeof CreatedInvitation>
