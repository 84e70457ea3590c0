/** `inlet sign-in-link`: prints a one-time link into the console, made directly in the database, so that nobody stays locked out. */
import { newSignInLink, signInUrl } from '#auth/sign-in-link.ts'
import { baseUrlOf } from '#config-addresses.ts'
import { isoTimestamp } from '#lib/clock.ts'
import { UserError } from '#lib/user-error.ts'
import { signInLimits } from '#model/limits.ts'
import { getAccount } from '#store/accounts.ts'
import { findPersonByEmail } from '#store/people.ts'
import { insertSignInLink } from '#store/sign-in-links.ts'
import { transact } from '#store/store.ts'
import { audited } from './audited.ts'
import type { CliContext } from './context.ts'
import { type JsonFlags, printResult } from './print-json.ts'
import { getFirstAccount, openCommandStore } from './store.ts'

export type SignInLinkFlags = JsonFlags & { readonly email?: string; readonly account?: string }

const hourMs = 3_600_000

export async function createSignInLink(this: CliContext, { email, account, json }: SignInLinkFlags): Promise<void> {
  await using store = await openCommandStore(this)
  const joined = account === undefined ? await getFirstAccount(store) : await getAccount(store.db, account)
  const person = email === undefined ? undefined : await findPersonByEmail(store.db, email)
  if (email !== undefined && person === undefined)
    throw new UserError(`nobody has the e-mail address ${email}: leave out --email for a link for somebody new`)
  const now = this.clock.now()
  const { secret, link } = newSignInLink(
    {
      person_id: person?.id ?? null,
      email: null,
      ...(person === undefined || account !== undefined
        ? { account_id: joined.id, role: 'owner' }
        : { account_id: null, role: null }),
      makes_operator: person === undefined && account === undefined,
      created_by: 'cli',
      lasts_ms: signInLimits.linkHours * hourMs,
    },
    now,
  )
  const what = { operation: 'createSignInLink', account_id: link.account_id, resource_id: link.id }
  await audited(store, this.clock, what, () => transact(store, (db) => insertSignInLink(db, link, now)))
  const operates = link.makes_operator ? ' and operate the installation' : ''
  const who = person === undefined ? `somebody new, who will own the account "${joined.name}"${operates}` : email
  const url = signInUrl(baseUrlOf(await this.readConfig()), secret)
  const expires_at = isoTimestamp(now + signInLimits.linkHours * hourMs)
  printResult(
    this,
    { json },
    { url, expires_at, email: email ?? null, account_id: link.account_id, operator: link.makes_operator },
    `${url}\n\nThe link works once, in the next ${signInLimits.linkHours} hours, for ${who}.\n`,
  )
}
