import { hashApiKey } from '#auth/secrets.ts'
import type { JoinRefusal, LinkUse, Newcomer, SignedIn } from '#auth/sign-in.ts'
import { newSignInLink, signInUrl } from '#auth/sign-in-link.ts'
import { AppError } from '#errors.ts'
import { must } from '#lib/assert.ts'
import { dayMs } from '#lib/time-units.ts'
import { newId } from '#model/id.ts'
import { signInLimits } from '#model/limits.ts'
import type {
  AcceptInvitation,
  ChangePerson,
  CreatedInvitation,
  Invitation,
  Invite,
  Membership,
  OpenSession,
  Person,
  Role,
  Session,
} from '#model/person.ts'
import { isPerson, type Principal } from '#model/principal.ts'
import { findFirstAccount, getAccount, isAccountSuspended } from '#store/accounts/accounts.ts'
import { eventOutsideApi, insertAuditEvent } from '#store/accounts/audit-events.ts'
import {
  changeRole,
  findPersonByEmail,
  findRole,
  hasPeople,
  insertMembership,
  insertPerson,
  knownEmail,
  listMemberships,
  listPeople,
  removeMembership,
  requireOwnerRole,
} from '#store/accounts/people.ts'
import { listSessions, removeOtherSessions, removeSession } from '#store/accounts/sessions.ts'
import {
  claimInvitationsTo,
  claimSignInLink,
  insertSignInLink,
  listInvitations,
  listInvitedAccounts,
  removeInvitation,
  removeInvitationsBy,
  removeLinksBy,
  type SignInLink,
} from '#store/accounts/sign-in-links.ts'
import { type Db, type Tx, transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { accountSuspended } from './accounts.ts'
import { actorOf } from './actor.ts'
import { firstLinkActor, signInLinks } from './sign-in-links.ts'

export type PeopleOptions = Pick<ControlContext, 'store' | 'clock' | 'logger'> & {
  readonly baseUrl: string
  /** Role in the first account for everybody whom the provider signs in. Null: only invited people get in. */
  readonly providerRole: Role | null
  /** Whether keys may be public. */
  readonly publicKeys: boolean
}

export type People = ReturnType<typeof peopleService>

/** Actor of invitations made with the operator token. */
const operatorActor = 'operator'

/** Manages who belongs to an account: sessions, members, invitations and sign-up. */
export function peopleService(options: PeopleOptions) {
  return {
    ...{ ...ownSessions(options), ...members(options) },
    ...{ ...invitations(options), ...signInLinks(options), ...newcomers(options) },
  }
}

/** Operations of a signed-in person on their own sessions and memberships. */
function ownSessions({ store, publicKeys, clock }: PeopleOptions) {
  return {
    async session({ session_id: id, expires_at, person }: SignedIn): Promise<Session> {
      const accounts = await listMemberships(store.db, person.id)
      return {
        ...{ id, person: { ...person, email: knownEmail(person.email) }, accounts },
        ...{ allows_public_keys: publicKeys, expires_at: expires_at.toISOString() },
      }
    },

    async sessions({ session_id, person }: SignedIn): Promise<{ items: OpenSession[] }> {
      const open = await listSessions(store.db, person.id, clock.now())
      return { items: open.map((session) => ({ ...session, is_current: session.id === session_id })) }
    },

    /** Throws not_found, also for a session of somebody else. */
    async endSession({ person }: SignedIn, id: string): Promise<void> {
      await transact(store, (db) => removeSession(db, person.id, id))
    },

    /** Ends all sessions of the person but this one. */
    async endOtherSessions({ session_id, person }: SignedIn): Promise<void> {
      await transact(store, (db) => removeOtherSessions(db, person.id, session_id))
    },

    /** Adds the account of an invitation to the person. Throws not_found, and conflict if the person belongs to it. */
    accept({ person }: SignedIn, { link: secret }: AcceptInvitation): Promise<Membership> {
      return transact(store, async (db) => {
        const now = clock.now()
        const link = await claimSignInLink(db, hashApiKey(secret), now)
        const { account_id, role } = link ?? {}
        // Links that make somebody an operator, or that are for one person, sign in and do nothing else.
        const isInvitation = link !== undefined && !link.makes_operator && link.person_id === null
        if (!isInvitation || !account_id || !role)
          throw new AppError('not_found', 'this invitation was used already, or is too old: ask for a new one')
        await requireUsable(db, link)
        if ((await findRole(db, person.id, account_id)) !== undefined)
          throw new AppError('conflict', 'you belong to this account already: the invitation is for somebody else')
        await insertMembership(db, { person_id: person.id, account_id, role }, now)
        await insertAuditEvent(db, joined(person.id, link, now))
        const [membership] = (await listMemberships(db, person.id)).filter((each) => each.account_id === account_id)
        return must(membership, 'the new membership')
      })
    },
  }
}

function members({ store, logger }: PeopleOptions) {
  return {
    async list({ account_id }: Principal): Promise<{ items: Person[] }> {
      return { items: await listPeople(store.db, account_id) }
    },

    /** Throws not_found, and conflict for the last owner. */
    async change(principal: Principal, person_id: string, { role }: ChangePerson): Promise<void> {
      const { account_id } = principal
      await transact(store, async (db) => {
        await changeRole(db, account_id, person_id, role)
        if (role !== 'owner') await removeInvitationsBy(db, account_id, `person:${person_id}`)
      })
      logger.info({ account_id: principal.account_id, person_id, role, by: actorOf(principal) }, 'role changed')
    },

    /** Throws not_found, and conflict for the last owner. */
    async remove(principal: Principal, person_id: string): Promise<void> {
      const { account_id } = principal
      await transact(store, async (db) => {
        await removeMembership(db, account_id, person_id)
        await removeInvitationsBy(db, account_id, `person:${person_id}`)
      })
      logger.info({ account_id: principal.account_id, person_id, by: actorOf(principal) }, 'person removed')
    },
  }
}

function invitations({ store, baseUrl, clock, logger }: PeopleOptions) {
  /** `check` runs in the transaction that creates the invitation. */
  async function create(
    { account_id, role, email, created_by }: Invite & { readonly account_id: string; readonly created_by: string },
    check: (db: Tx) => Promise<void>,
  ): Promise<CreatedInvitation> {
    const now = clock.now()
    const lasts_ms = signInLimits.invitationDays * dayMs
    const invited = { person_id: null, email, account_id, role, makes_operator: false, created_by, lasts_ms }
    const { secret, link } = newSignInLink(invited, now)
    const invitation = await transact(store, async (db) => {
      await check(db)
      await insertSignInLink(db, link, now)
      const open = await listInvitations(db, account_id, now)
      const [made] = open.filter(({ id }) => id === link.id)
      if (made === undefined || open.length > signInLimits.invitationsOfAccountMax)
        throw new AppError('conflict', `there are ${signInLimits.invitationsOfAccountMax} open invitations: revoke some first`)
      return made
    })
    logger.info({ account_id, invitation_id: link.id, role, by: created_by }, 'invitation created')
    return { ...invitation, url: signInUrl(baseUrl, secret) }
  }

  return {
    async invite(principal: Principal, invite: Invite): Promise<CreatedInvitation> {
      const { account_id } = principal
      return create({ account_id, created_by: actorOf(principal), ...invite }, async (db) => {
        // Checks the ownership again, under a lock: losing it removes a person's invitations, so none may be added later.
        if (isPerson(principal)) await requireOwnerRole(db, account_id, principal.person_id)
      })
    },

    /** For operators, who invite the first owner; `operator` is null with the operator token. Throws not_found. */
    async inviteTo(account_id: string, operator: SignedIn | null, invite: Invite): Promise<CreatedInvitation> {
      const created_by = operator === null ? operatorActor : `person:${operator.person.id}`
      return create({ account_id, created_by, ...invite }, async (db) => {
        await getAccount(db, account_id)
      })
    },

    async invitations({ account_id }: Principal): Promise<{ items: Invitation[] }> {
      return { items: await listInvitations(store.db, account_id, clock.now()) }
    },

    /** Throws not_found. */
    async revokeInvitation({ account_id }: Principal, id: string): Promise<void> {
      await transact(store, (db) => removeInvitation(db, account_id, id))
    },
  }
}

/** How somebody becomes a person: by a link, or by a provider. */
function newcomers({ store, providerRole, clock, logger }: PeopleOptions) {
  return {
    /** Returns why somebody whom the provider knows may not become a person; undefined if they may. */
    async refuseToJoin({ email, isEmailVerified }: Newcomer): Promise<JoinRefusal | undefined> {
      const invited = isEmailVerified ? await listInvitedAccounts(store.db, email, clock.now()) : []
      const first = providerRole === null ? undefined : await findFirstAccount(store.db)
      const accounts = first === undefined ? invited : [...invited, first]
      if (accounts.length === 0) return 'not_invited'
      return accounts.some(({ status }) => status === 'active') ? undefined : 'account_suspended'
    },

    /** Gives a person whom the provider brought the accounts of their invitations, else the first one if its setting says so. */
    join(person_id: string, { email, isEmailVerified }: Newcomer): Promise<void> {
      return transact(store, async (db) => {
        const now = clock.now()
        const invitations = isEmailVerified ? await claimInvitationsTo(db, email, now) : []
        for (const link of invitations) {
          const { account_id, role } = link
          if (account_id === null || role === null) continue
          await insertMembership(db, { person_id, account_id, role }, now)
          await insertAuditEvent(db, joined(person_id, link, now))
        }
        const first = invitations.length === 0 && providerRole !== null ? await findFirstAccount(db) : undefined
        if (first?.status !== 'active' || providerRole === null) return
        await insertMembership(db, { person_id, account_id: first.id, role: providerRole }, now)
        await insertAuditEvent(db, joined(person_id, { id: person_id, account_id: first.id }, now))
      })
    },

    /** Returns whom an attempt to sign in was for. */
    async findByEmail(email: string | undefined): Promise<{ readonly id: string } | undefined> {
      return email === undefined ? undefined : findPersonByEmail(store.db, email)
    },

    /** Uses a link up: makes the person if it is for somebody new, and adds the account. Undefined if the link is not valid. */
    useLink(hash: string, name: string | undefined): Promise<LinkUse | undefined> {
      return transact(store, async (db) => {
        const now = clock.now()
        const link = await claimSignInLink(db, hash, now)
        if (link === undefined) return undefined
        await requireUsable(db, link)
        // Once there is somebody, no link of a start makes another operator: starts print them into logs.
        const isLate = link.created_by === firstLinkActor && (await hasPeople(db))
        await removeLinksBy(db, firstLinkActor)
        if (isLate) return undefined
        const { email, account_id, role, makes_operator: is_operator } = link
        const person_id = link.person_id ?? newId()
        if (link.person_id === null)
          await insertPerson(db, { id: person_id, name: name ?? nameFrom(email), email, is_operator }, now)
        if (account_id !== null && role !== null) {
          await insertMembership(db, { person_id, account_id, role }, now)
          await insertAuditEvent(db, joined(person_id, link, now))
        }
        logger.info({ person_id, link_id: link.id, account_id }, 'signed in by a link')
        return { person_id }
      })
    },
  }
}

/** An invitation waits while its account is suspended. A link of the command line works. Throws account_suspended. */
async function requireUsable(db: Db, { created_by, account_id }: SignInLink): Promise<void> {
  const isInvitation = (created_by.startsWith('person:') || created_by === operatorActor) && account_id !== null
  if (isInvitation && (await isAccountSuspended(db, account_id))) throw accountSuspended()
}

/** The event in the trail of the account, whose owners see who came in by which link. */
function joined(person_id: string, { id, account_id }: Pick<SignInLink, 'id' | 'account_id'>, now: number) {
  return eventOutsideApi({ actor: `person:${person_id}`, operation: 'joinAccount', account_id, resource_id: id }, now)
}

function nameFrom(email: string | null): string {
  return email?.split('@')[0] ?? 'Owner'
}
