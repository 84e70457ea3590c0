import { ownCommand } from '#lib/own-command.ts'
import { UserError } from '#lib/user-error.ts'
import type { Account } from '#model/account.ts'
import { findFirstAccount } from '#store/accounts.ts'
import { requireCurrentSchema } from '#store/prepare.ts'
import { openStore, type Store } from '#store/store.ts'
import type { CliContext } from './context.ts'

/** Opens the configured database. Throws a UserError if there is none, or one of another release: commands create and migrate none. */
export async function openCommandStore(context: CliContext): Promise<Store & AsyncDisposable> {
  const { databaseUrl, paths } = await context.readConfig()
  const database = databaseUrl || paths.database
  const store = await openStore(database, { mustExist: true })
  try {
    await requireCurrentSchema(store, database)
  } catch (error) {
    await store.close()
    throw error
  }
  return { ...store, [Symbol.asyncDispose]: () => store.close() }
}

/** Returns the account that the first start created. Throws UserError. */
export async function getFirstAccount(store: Store): Promise<Account> {
  const account = await findFirstAccount(store.db)
  if (account !== undefined) return account
  throw new UserError(`there is no account yet: start the control process once to create it (${ownCommand('start')})`)
}
