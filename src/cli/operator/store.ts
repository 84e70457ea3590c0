import { systemFiles } from '#lib/files.ts'
import { ownCommand } from '#lib/own-command.ts'
import { createLogger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import type { Account } from '#model/account.ts'
import { pageLimits } from '#model/limits.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { findFirstAccount } from '#store/accounts/accounts.ts'
import { type ChangeTx, inNewEpoch } from '#store/cluster/epoch.ts'
import { readOnly, timelineFile } from '#store/cluster/timeline-file.ts'
import type { TimelineMemory } from '#store/engines/timelines.ts'
import { requireCurrentSchema } from '#store/migrations/prepare.ts'
import { openStore, type Store } from '#store/store.ts'
import type { CliContext } from '../terminal/context.ts'

/** Returns the timelines that control on this machine remembers. Commands do not use an older server either. */
export function knownTimelines(path: string): TimelineMemory {
  return readOnly(timelineFile(systemFiles, path, createLogger('cli', 'silent')))
}

export type CommandStoreOptions = {
  /** Open a primary from before a failover, too: for commands that show it, or say that it is the right one. */
  readonly mayBeOlder?: boolean
}

/** Opens the configured database. Throws a UserError if there is none, or one of another release: commands create and migrate none. */
export async function openCommandStore(
  context: CliContext,
  { mayBeOlder = false }: CommandStoreOptions = {},
): Promise<Store & AsyncDisposable> {
  const { databaseUrl, paths } = await context.readConfig()
  const database = databaseUrl || paths.database
  const timelines = mayBeOlder ? {} : { timelines: knownTimelines(paths.databaseTimelines) }
  const store = await openStore(database, { mustExist: true, ...timelines })
  try {
    await requireCurrentSchema(store, database)
  } catch (error) {
    await store.close()
    throw error
  }
  return { ...store, [Symbol.asyncDispose]: () => store.close() }
}

/** Returns what services of control need to run beside it. Nodes and control see their changes within seconds. */
export function servicesBeside({ clock }: CliContext, store: Store) {
  return {
    ...{ store, clock, logger: createLogger('cli', 'silent') },
    applyChange: <T>(work: (db: ChangeTx, epoch: number) => Promise<T>): Promise<T> => inNewEpoch(store, work),
  }
}

/** Reads all pages of a list. */
export async function listAll<T>(list: (page: PageQuery) => Promise<Page<T>>): Promise<readonly T[]> {
  const items: T[] = []
  for (let offset: number | null = 0; offset !== null; ) {
    const page = await list({ limit: pageLimits.max, offset })
    items.push(...page.items)
    offset = page.next_offset
  }
  return items
}

/** Returns the account that the first start created. Throws UserError. */
export async function getFirstAccount(store: Store): Promise<Account> {
  const account = await findFirstAccount(store.db)
  if (account !== undefined) return account
  throw new UserError(`there is no account yet: start the control process once to create it (${ownCommand('start')})`)
}
