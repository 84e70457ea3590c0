import { newSignInLink, type SignInLinkFor, signInUrl } from '#auth/sign-in-link.ts'
import { AppError } from '#errors.ts'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { hourMs } from '#lib/time-units.ts'
import { signInLimits } from '#model/limits.ts'
import { findFirstAccount, getAccount } from '#store/accounts/accounts.ts'
import { findPersonByEmail, hasPeople } from '#store/accounts/people.ts'
import { insertSignInLink } from '#store/accounts/sign-in-links.ts'
import { type Store, transact } from '#store/store.ts'

export type SignInLinksOptions = { readonly store: Store; readonly baseUrl: string; readonly clock: Clock }

/** Whom the operator lets in: a person of this installation, or somebody new. */
export type LinkRecipient = {
  readonly email: string | undefined
  /** The account to own; undefined for the first one if the person is new, else for none. */
  readonly account_id: string | undefined
  readonly first_account_id: string
}

export type SignInLink = Awaited<ReturnType<ReturnType<typeof signInLinks>['createForOperator']>>

/** Actor of the links that control prints at startup. */
export const firstLinkActor = 'bootstrap'

/** Links that let somebody in without an invitation. */
export function signInLinks({ store, baseUrl, clock }: SignInLinksOptions) {
  async function create(link: Omit<SignInLinkFor, 'lasts_ms' | 'email'>) {
    const now = clock.now()
    const made = newSignInLink({ ...link, email: null, lasts_ms: signInLimits.linkHours * hourMs }, now)
    await transact(store, (db) => insertSignInLink(db, made.link, now))
    const { id, account_id, makes_operator, expires_at } = made.link
    return { id, url: signInUrl(baseUrl, made.secret), account_id, makes_operator, expires_at: isoTimestamp(expires_at) }
  }

  return {
    /** Returns a link for the first person, who owns the first account and operates the installation. Undefined once there are people. */
    async firstLink(): Promise<string | undefined> {
      const account = await findFirstAccount(store.db)
      if (account === undefined || (await hasPeople(store.db))) return undefined
      const first = { person_id: null, account_id: account.id, role: 'owner', makes_operator: true } as const
      return (await create({ ...first, created_by: firstLinkActor })).url
    },

    /** Makes a link for the operator at the command line, so that nobody stays locked out. Throws not_found. */
    async createForOperator({ email, account_id, first_account_id }: LinkRecipient) {
      const account = await getAccount(store.db, account_id ?? first_account_id)
      const person = email === undefined ? undefined : await findPersonByEmail(store.db, email)
      if (email !== undefined && person === undefined)
        throw new AppError('not_found', `nobody has the e-mail address ${email}: leave out --email for a link for somebody new`)
      const owns = person === undefined || account_id !== undefined
      const made = await create({
        person_id: person?.id ?? null,
        ...(owns ? { account_id: account.id, role: 'owner' } : { account_id: null, role: null }),
        makes_operator: person === undefined && account_id === undefined,
        created_by: 'cli',
      })
      return { ...made, account_name: account.name }
    },
  }
}
