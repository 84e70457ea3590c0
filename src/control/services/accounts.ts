/**
 * The accounts of the installation, for its operator.
 *
 * Owns: which accounts are suspended, as this process knows it. Does not own: what a suspended account may do (`authenticate.ts`, and
 * ingest of each node).
 * Law: a suspension is in force in this process once its epoch was read. It changes nothing that the account has.
 */
import { newAccount } from '#auth/new-account.ts'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Account, ChangeAccount, CreateAccount, CreatedAccount } from '#model/account.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { getAccount, insertAccountWithKey, listAccounts, listSuspendedAccountIds, updateAccount } from '#store/accounts.ts'
import type { Store } from '#store/store.ts'
import type { ApplyChange } from './changes.ts'
import type { EpochFeed } from './epoch-feed.ts'

export type AccountsOptions = {
  readonly store: Store
  readonly applyChange: ApplyChange
  readonly feed: EpochFeed
  readonly clock: Clock
  readonly logger: Logger
}

export class Accounts {
  readonly #options: AccountsOptions
  #suspended: ReadonlySet<string> = new Set()

  constructor(options: AccountsOptions) {
    this.#options = options
    options.feed.subscribe(async () => {
      this.#suspended = new Set(await listSuspendedAccountIds(options.store.db))
    })
  }

  isSuspended(id: string): boolean {
    return this.#suspended.has(id)
  }

  async create({ name }: CreateAccount): Promise<CreatedAccount> {
    const { applyChange, clock, logger } = this.#options
    const { secret, ...created } = newAccount(name)
    const { account, key } = await applyChange((db) => insertAccountWithKey(db, created, clock.now()))
    logger.info({ account_id: account.id, key_id: key.id }, 'account created')
    return { ...account, first_key: { ...key, api_key: secret } }
  }

  list(page: PageQuery): Promise<Page<Account>> {
    return listAccounts(this.#options.store.db, page)
  }

  get(id: string): Promise<Account> {
    return getAccount(this.#options.store.db, id)
  }

  async change(id: string, change: ChangeAccount): Promise<Account> {
    const { applyChange, logger } = this.#options
    const changed = await applyChange((db) => updateAccount(db, id, change))
    logger.info({ account_id: id, ...change }, 'account changed')
    return changed
  }
}

export function accountSuspended(): AppError {
  const message = 'the account is suspended: it can be read, but not changed; ask the operator of this installation'
  return new AppError('account_suspended', message)
}
