import { systemFiles } from '#lib/files.ts'
import { ownCommand } from '#lib/own-command.ts'
import { serverOf, splitPostgresUrl } from '#lib/postgres-urls.ts'
import { createLogger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import type { Account } from '#model/account.ts'
import { pageLimits } from '#model/limits.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { findFirstAccount } from '#store/accounts/accounts.ts'
import { type ChangeTx, inNewEpoch } from '#store/cluster/epoch.ts'
import { describeMissingStandby, listServers } from '#store/cluster/server-problems.ts'
import { readOnly, timelineFile } from '#store/cluster/timeline-file.ts'
import type { SurveyedServer } from '#store/engines/postgres.ts'
import type { TimelineMemory } from '#store/engines/timelines.ts'
import { requireCurrentSchema } from '#store/migrations/prepare.ts'
import { openStore, type Store } from '#store/store.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'

/** Returns the timelines that control on this machine remembers. Commands do not use an older server either. */
export function knownTimelines(path: string): TimelineMemory {
  return readOnly(timelineFile(systemFiles, path, createLogger('cli', 'silent')))
}

export type CommandStoreOptions = {
  /** Open a primary from before a failover, too: for commands that show it, or say that it is the right one. */
  readonly mayBeOlder?: boolean
  /** Use this one of the servers in the URL: `host:port`, or a host alone. */
  readonly server?: string | undefined
}

export type CommandStore = Store & AsyncDisposable

/** Opens the configured database. Throws a UserError if there is none, or one of another release: commands create and migrate none. */
export async function openCommandStore(
  context: CliContext,
  { mayBeOlder = false, server }: CommandStoreOptions = {},
): Promise<CommandStore> {
  const { databaseUrl, paths } = await context.readConfig()
  const database = server === undefined ? databaseUrl || paths.database : urlOfServer(databaseUrl, server)
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

function urlOfServer(databaseUrl: string, server: string): string {
  const urls = splitPostgresUrl(databaseUrl)
  const url = urls.find((each) => [serverOf(each), URL.parse(each)?.hostname].includes(server))
  if (url !== undefined) return url
  const named = databaseUrl === '' ? 'no server' : urls.map(serverOf).join(', ')
  throw new UsageError(`--server: ${server} is not in INLET_DATABASE_URL, which names ${named}`)
}

/**
 * Opens the database for a command that changes it. Throws a UserError while nobody can know which server control uses, and while the server
 * would let the command wait for a standby.
 */
export async function openToChange(context: CliContext): Promise<CommandStore> {
  const store = await openCommandStore(context)
  try {
    const found = (await store.servers?.survey()) ?? []
    const rivals = selectRivals(found)
    if (rivals.length > 0)
      throw new UserError(
        `${describeRivals(rivals)}: control may use another one than this command would, so nothing was changed. Stop the wrong one, or say which is right: inlet database accept --server HOST:PORT`,
      )
    requireStandby(found)
  } catch (error) {
    await store.close()
    throw error
  }
  return store
}

/** Throws a UserError if a change would wait for a standby that is away. */
export function requireStandby(servers: readonly SurveyedServer[]): void {
  const problem = describeMissingStandby(servers)
  if (problem !== undefined) throw new UserError(`${problem.message}. Nothing was changed: ${problem.remedy}`)
}

/** Opens the database for a command that only reads it. Warns while nobody can know which server control uses. */
export async function openToRead(context: CliContext): Promise<CommandStore> {
  const store = await openCommandStore(context)
  const rivals = selectRivals((await store.servers?.survey()) ?? [])
  if (rivals.length > 0) {
    const used = rivals.find(({ isUsed }) => isUsed)?.host ?? 'one of them'
    context.process.stderr.write(
      `warning: ${describeRivals(rivals)}. This command reads ${used}, and control may use another one: inlet database show\n`,
    )
  }
  return store
}

/** Returns the servers that take writes, if there are several of which none is older than another. */
function selectRivals(servers: readonly SurveyedServer[]): readonly SurveyedServer[] {
  const writable = servers.filter(({ state }) => state === 'writable')
  return writable.length < 2 ? [] : writable
}

function describeRivals(rivals: readonly SurveyedServer[]): string {
  return `${rivals.length} servers of the database take writes, and none is older: ${listServers(rivals)}`
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
