/** `inlet sign-in-link`: prints a one-time link into the console, made directly in the database, so that nobody stays locked out. */
import { baseUrlOf } from '#config/addresses.ts'
import { type SignInLink, signInLinks } from '#control/resources/sign-in-links.ts'
import { signInLimits } from '#model/limits.ts'
import type { CliContext } from '../terminal/context.ts'
import { type JsonFlags, printResult } from '../terminal/print-json.ts'
import { audited } from './audited.ts'
import { getFirstAccount, openToChange } from './store.ts'

export type SignInLinkFlags = JsonFlags & { readonly email?: string; readonly account?: string }

export async function createSignInLink(this: CliContext, { email, account, json }: SignInLinkFlags): Promise<void> {
  await using store = await openToChange(this)
  const first = await getFirstAccount(store)
  const links = signInLinks({ store, baseUrl: baseUrlOf(await this.readConfig()), clock: this.clock })
  const what = { operation: 'createSignInLink', account_id: account ?? null, resource_id: null }
  const nameCreated = ({ id: resource_id, account_id }: SignInLink) => ({ resource_id, account_id })
  const link = await audited(store, this.clock, { ...what, nameCreated }, () =>
    links.createForOperator({ email, account_id: account, first_account_id: first.id }),
  )
  const { url, expires_at, account_id, account_name, makes_operator } = link
  const operates = makes_operator ? ' and operate the installation' : ''
  const who = email ?? `somebody new, who will own the account "${account_name}"${operates}`
  printResult(
    this,
    { json },
    { url, expires_at, email: email ?? null, account_id, operator: makes_operator },
    `${url}\n\nThe link works once, in the next ${signInLimits.linkHours} hours, for ${who}.\n`,
  )
}
