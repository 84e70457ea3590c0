/**
 * The accounts of the installation, for its operator.
 *
 * Owns: which accounts are suspended, as this process knows it. Does not own: what a suspended account may do (`authenticate.ts`, and
 * ingest of each node).
 * Law: a suspension is in force in this process once its epoch was read. It changes nothing that the account has.
 */
import { newAccount } from '#auth/new-account.ts'
import { AppError } from '#errors.ts'
import type { Account, ChangeAccount, CreateAccount, CreatedAccount } from '#model/account.ts'
import type { Page, PageQuery } from '#model/page.ts'
import {
  getAccount,
  insertAccountWithKey,
  listAccounts,
  listSuspendedAccountIds,
  updateAccount,
} from '#store/accounts/accounts.ts'
import type { EpochFeed } from '#store/cluster/epoch-feed.ts'
import type { Store } from '#store/store.ts'
import type { ControlContext } from '../context.ts'

export type AccountsOptions = Pick<ControlContext, 'store' | 'applyChange' | 'clock' | 'logger'> & {
  /** Whether the operator says which buckets an account may use. */
  readonly hasAllowedBuckets: boolean
}

export type AccountChange = ChangeAccount | ((account: Account) => ChangeAccount)

export type Accounts = ReturnType<typeof accountService>

export function accountService({ store, applyChange, clock, logger, hasAllowedBuckets }: AccountsOptions) {
  const shown = (account: Account): Account => (hasAllowedBuckets ? account : { ...account, allowed_buckets: null })
  return {
    async create({ name }: CreateAccount): Promise<CreatedAccount> {
      const { secret, ...created } = newAccount(name)
      const { account, key } = await applyChange((db) => insertAccountWithKey(db, created, clock.now()))
      logger.info({ account_id: account.id, key_id: key.id }, 'account created')
      return { ...shown(account), first_key: { ...key, api_key: secret } }
    },

    async list(query: PageQuery): Promise<Page<Account>> {
      const page = await listAccounts(store.db, query)
      return { ...page, items: page.items.map(shown) }
    },

    async get(id: string): Promise<Account> {
      return shown(await getAccount(store.db, id))
    },

    /** Takes the change, or makes it from what the account has. */
    async change(id: string, wanted: AccountChange): Promise<Account> {
      const { account, change } = await applyChange(async (db) => {
        const change = typeof wanted === 'function' ? wanted(await getAccount(db, id)) : wanted
        if (change.allowed_buckets !== undefined && !hasAllowedBuckets) throw hasNoAllowedBuckets()
        return { account: await updateAccount(db, id, change), change }
      })
      logger.info({ account_id: id, ...change }, 'account changed')
      return shown(account)
    },
  }
}

/** Knows which accounts are suspended, as of the epoch that this process read last. */
export function watchSuspensions(store: Store, feed: EpochFeed): (account_id: string) => boolean {
  let suspended: ReadonlySet<string> = new Set()
  feed.subscribe(async () => {
    suspended = new Set(await listSuspendedAccountIds(store.db))
  })
  return (account_id) => suspended.has(account_id)
}

function hasNoAllowedBuckets(): AppError {
  const message = 'must be left out: only installations with INLET_S3_CREDENTIALS=own have such a list'
  return new AppError('validation_error', `allowed_buckets ${message}`, { errors: [{ path: 'allowed_buckets', message }] })
}

export function accountSuspended(): AppError {
  const message = 'the account is suspended: it can be read, but not changed; ask the operator of this installation'
  return new AppError('account_suspended', message)
}
