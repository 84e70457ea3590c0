/** `inlet accounts`: manages accounts, directly in the database, so that it works while control is down. */
import { type AccountChange, type Accounts, accountService } from '#control/resources/accounts.ts'
import { type Account, CreateAccount } from '#model/account.ts'
import { parseFields } from '#model/field-errors.ts'
import { hasAllowedBuckets, storeTraitsOf } from '#model/object-store.ts'
import type { Store } from '#store/store.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { type JsonFlags, printJson, printResult } from '../terminal/print-json.ts'
import { toTable } from '../terminal/table.ts'
import { audited } from './audited.ts'
import { getFirstAccount, listAll, openToChange, openToRead, servicesBeside } from './store.ts'

export type NameFlags = JsonFlags & { readonly name: string }

export async function createAccount(this: CliContext, flags: NameFlags): Promise<void> {
  const { name } = parseName(flags)
  await using store = await openToChange(this)
  // The first start creates the first account, which is the operator's own.
  await getFirstAccount(store)
  const what = { operation: 'createAccount', account_id: null, resource_id: null }
  const nameCreated = ({ id }: Account) => ({ account_id: id, resource_id: id })
  const account = await audited(store, this.clock, { ...what, nameCreated }, async () =>
    (await openAccounts(this, store)).create({ name }),
  )
  printResult(
    this,
    flags,
    account,
    `${account.first_key.api_key}\n\nThis is the first key of the account "${account.name}", with every scope. Save it now: it is not shown again.\n` +
      `The id of the account is ${account.id}.\n`,
  )
}

export async function listAllAccounts(this: CliContext, { json }: JsonFlags): Promise<void> {
  await using store = await openToRead(this)
  const service = await openAccounts(this, store)
  const accounts = await listAll((page) => service.list(page))
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

async function change(context: CliContext, id: string, changes: AccountChange): Promise<Account> {
  await using store = await openToChange(context)
  return await changeAccount(context, store, id, changes)
}

export async function changeAccount(context: CliContext, store: Store, id: string, changes: AccountChange): Promise<Account> {
  const accounts = await openAccounts(context, store)
  const what = { operation: 'changeAccount', account_id: id, resource_id: id }
  return audited(store, context.clock, what, () => accounts.change(id, changes))
}

async function openAccounts(context: CliContext, store: Store): Promise<Accounts> {
  const traits = storeTraitsOf(await context.readConfig())
  return accountService({ ...servicesBeside(context, store), hasAllowedBuckets: hasAllowedBuckets(traits) })
}

function parseName({ name }: NameFlags): CreateAccount {
  const { value, errors } = parseFields(CreateAccount, { name })
  if (errors === undefined) return value
  throw new UsageError(errors.map(({ message }) => `--name: ${message}`).join('\n'))
}
