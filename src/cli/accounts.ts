/** `inlet accounts`: manages accounts, directly in the database, so that it works while control is down. */
import { newAccount } from '#auth/new-account.ts'
import type { Clock } from '#lib/clock.ts'
import { type Account, type ChangeAccount, CreateAccount } from '#model/account.ts'
import { parseFields } from '#model/field-errors.ts'
import { pageLimits } from '#model/limits.ts'
import { insertAccountWithKey, listAccounts, updateAccount } from '#store/accounts.ts'
import { applyChange } from '#store/epoch.ts'
import type { Store } from '#store/store.ts'
import { audited } from './audited.ts'
import { type CliContext, UsageError } from './context.ts'
import { type JsonFlags, printJson, printResult } from './print-json.ts'
import { getFirstAccount, openCommandStore } from './store.ts'
import { toTable } from './table.ts'

export type NameFlags = JsonFlags & { readonly name: string }

export async function createAccount(this: CliContext, flags: NameFlags): Promise<void> {
  const { name } = parseName(flags)
  await using store = await openCommandStore(this)
  // The first start creates the first account, which is the operator's own.
  await getFirstAccount(store)
  const { secret, ...created } = newAccount(name)
  const { id } = created.account
  const what = { operation: 'createAccount', account_id: id, resource_id: id }
  const { account, key } = await audited(store, this.clock, what, () =>
    applyChange(store, (db) => insertAccountWithKey(db, created, this.clock.now())),
  )
  printResult(
    this,
    flags,
    { ...account, first_key: { ...key, api_key: secret } },
    `${secret}\n\nThis is the first key of the account "${account.name}", with every scope. Save it now: it is not shown again.\n` +
      `The id of the account is ${account.id}.\n`,
  )
}

export async function listAllAccounts(this: CliContext, { json }: JsonFlags): Promise<void> {
  await using store = await openCommandStore(this)
  const accounts: Account[] = []
  for (let offset: number | null = 0; offset !== null; ) {
    const page = await listAccounts(store.db, { limit: pageLimits.max, offset })
    accounts.push(...page.items)
    offset = page.next_offset
  }
  if (json) return printJson(this, accounts)
  const rows = accounts.map(({ id, name, status, created_at }) => [id, name, status, created_at])
  const table = toTable([['ID', 'NAME', 'STATUS', 'CREATED'], ...rows])
  this.process.stdout.write(accounts.length === 0 ? 'There are no accounts.\n' : table)
}

export async function renameAccount(this: CliContext, flags: NameFlags, id: string): Promise<void> {
  const account = await change(this, id, parseName(flags))
  printResult(this, flags, account, `The account ${id} is now named "${account.name}".\n`)
}

export async function suspendAccount(this: CliContext, flags: JsonFlags, id: string): Promise<void> {
  const account = await change(this, id, { status: 'suspended' })
  printResult(
    this,
    flags,
    account,
    `The account "${account.name}" is suspended. Nodes refuse its data within seconds, and still deliver what they acknowledged.\n`,
  )
}

export async function resumeAccount(this: CliContext, flags: JsonFlags, id: string): Promise<void> {
  const account = await change(this, id, { status: 'active' })
  printResult(this, flags, account, `The account "${account.name}" is active. Nodes accept its data within seconds.\n`)
}

async function change(context: CliContext, id: string, changes: ChangeAccount): Promise<Account> {
  await using store = await openCommandStore(context)
  return await changeAccount(store, context.clock, id, changes)
}

export function changeAccount(store: Store, clock: Clock, id: string, changes: ChangeAccount): Promise<Account> {
  const what = { operation: 'changeAccount', account_id: id, resource_id: id }
  return audited(store, clock, what, () => applyChange(store, (db) => updateAccount(db, id, changes)))
}

function parseName({ name }: NameFlags): CreateAccount {
  const { value, errors } = parseFields(CreateAccount, { name })
  if (errors === undefined) return value
  throw new UsageError(errors.map(({ message }) => `--name: ${message}`).join('\n'))
}
