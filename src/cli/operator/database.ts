/** `inlet database`: shows which database this is, and says that nodes should follow it. Directly in the database, so that it works while control is down. */
import { isoTimestamp } from '#lib/clock.ts'
import { namedId } from '#lib/named-id.ts'
import { UserError } from '#lib/user-error.ts'
import { findFirstAccount } from '#store/accounts/accounts.ts'
import { beginGeneration, currentPosition, inNewEpoch } from '#store/cluster/epoch.ts'
import { type DatabaseProblem, listProblems, listServers } from '#store/cluster/server-problems.ts'
import { findFirstDelivery, listMissingCommits, noteMissingCommits } from '#store/commits/missing-commits.ts'
import type { SurveyedServer } from '#store/engines/postgres.ts'
import { compare } from '#store/engines/timelines.ts'
import { listNodeInventories, type NodeInventory } from '#store/nodes/node-inventory.ts'
import { newestHeartbeat } from '#store/nodes/nodes.ts'
import type { Store } from '#store/store.ts'
import type { CliContext } from '../terminal/context.ts'
import { type JsonFlags, printResult } from '../terminal/print-json.ts'
import { audited } from './audited.ts'
import { knownTimelines, listAll, openCommandStore, requireStandby } from './store.ts'

export async function showDatabase(this: CliContext, flags: JsonFlags): Promise<void> {
  await using store = await openCommandStore(this, { mayBeOlder: true })
  const { servers, problems } = await examineServers(this, store)
  const { database, generation, epoch } = await currentPosition(store.db)
  const missing = (await listMissingCommits(store.db)).map(({ region, since, automatic }) => ({
    ...{ region, since: isoTimestamp(since), automatic: automatic === 1 },
  }))
  const refusing = (await listAll((page) => listNodeInventories(store.db, page))).flatMap(keptOf)
  const accepted_at = generation === 0 ? null : isoTimestamp(generation)
  const lines = [
    `database ${database}, epoch ${epoch}${accepted_at === null ? '' : `, accepted at ${accepted_at}`}`,
    ...servers.map(describeServer),
    ...problems.flatMap(({ message, remedy }) => [message, `  ${remedy}`]),
    ...refusing.map(
      ({ node_id, node_name, kept_epoch }) =>
        `node ${namedId(node_id, node_name)} keeps its configuration of epoch ${kept_epoch}, and refuses that of this database`,
    ),
    ...(refusing.length === 0 ? [] : ['Put the right database in its place, or accept this one: inlet database accept']),
    ...missing.map(({ region, since }) => `commits since ${since} may be missing${region === '*' ? '' : ` in region ${region}`}`),
    ...(missing.length === 0
      ? []
      : missing.every(({ automatic }) => automatic)
        ? ['Control records them. If it takes long: inlet commits rebuild']
        : ['Record them again: inlet commits rebuild']),
  ]
  const shown = {
    servers: servers.map(({ host, state, standing, isUsed }) => ({
      ...{ host, state, timeline: standing?.timeline ?? null, used: isUsed },
    })),
    problems: problems.map(({ kind, message, remedy }) => ({ kind, message, remedy })),
  }
  const result = { id: database, epoch, accepted_at, ...shown, refusing, missing_commits: missing }
  printResult(this, flags, result, `${lines.join('\n')}\n`)
}

type Examined = {
  readonly servers: readonly SurveyedServer[]
  readonly problems: readonly Pick<DatabaseProblem, 'kind' | 'message' | 'remedy'>[]
}

/** Compares the servers of Postgres with each other, and with what control on this machine remembers. */
async function examineServers(context: CliContext, store: Store): Promise<Examined> {
  if (store.servers === undefined) return { servers: [], problems: [] }
  const { paths } = await context.readConfig()
  const remembered = await knownTimelines(paths.databaseTimelines).read()
  const servers = (await store.servers.survey()).map((server): SurveyedServer => {
    const newest = remembered.find(({ system }) => system === server.standing?.system)
    const isOlder = server.standing !== undefined && newest !== undefined && compare(server.standing, newest) < 0
    return isOlder ? { ...server, state: 'older' } : server
  })
  return { servers, problems: listProblems(servers) }
}

const stateWords: Readonly<Record<SurveyedServer['state'], string>> = {
  writable: 'takes writes',
  older: 'takes writes, but a newer server was used since: control refuses it',
  standby: 'is a standby',
  unreachable: 'cannot be reached',
}

function describeServer({ host, state, standing }: SurveyedServer): string {
  return `server ${host} ${stateWords[state]}${standing === undefined ? '' : ` (timeline ${standing.timeline})`}`
}

type Refusing = { readonly node_id: string; readonly node_name: string | null; readonly kept_epoch: number }

function keptOf({ id, name, ingest, delivery }: NodeInventory): readonly Refusing[] {
  const kept = ingest?.kept_position ?? delivery?.kept_position
  return kept == null ? [] : [{ node_id: id, node_name: name, kept_epoch: kept.epoch }]
}

export type AcceptFlags = JsonFlags & { readonly server?: string }

/** Commits that were delivered after the last heartbeat in it may be missing from an older copy. A database without an account has lost none. */
export async function acceptDatabase(this: CliContext, { server, ...flags }: AcceptFlags): Promise<void> {
  await using store = await openCommandStore(this, { mayBeOlder: true, server })
  const accepted = await requireOneServer(store)
  const now = this.clock.now()
  const isEmpty = (await findFirstAccount(store.db)) === undefined
  const since = (await newestHeartbeat(store.db)) ?? (await findFirstDelivery(store.db))
  const what = { operation: 'acceptDatabase', account_id: null, resource_id: null }
  await audited(store, this.clock, what, () =>
    inNewEpoch(store, async (db) => {
      await beginGeneration(db, now)
      if (!isEmpty) await noteMissingCommits(db, null, since, now)
    }),
  )
  const { database, epoch } = await currentPosition(store.db)
  const next = isEmpty
    ? 'It has no account: start Inlet, which creates the first one with a key and an endpoint.'
    : 'Then record what was delivered after it was copied: inlet commits rebuild'
  printResult(
    this,
    flags,
    { id: database, epoch, accepted: true, server: accepted ?? null },
    `Nodes follow ${accepted === undefined ? 'this database' : `the database at ${accepted}`} from now on, whatever they had before.\n${next}\n`,
  )
}

/**
 * Returns host and port of the server that is used; undefined on SQLite. Throws a UserError if another one takes writes, too, and if it confirms
 * none.
 */
async function requireOneServer({ servers }: Store): Promise<string | undefined> {
  const found = (await servers?.survey()) ?? []
  const writable = found.filter(({ state }) => state === 'writable' || state === 'older')
  if (writable.length < 2) {
    requireStandby(found)
    return found.find(({ isUsed }) => isUsed)?.host
  }
  throw new UserError(
    `${writable.length} servers of the database take writes: ${listServers(writable)}. Nothing was accepted, because control and nodes then leave the others, with what only those have. Name the right one: inlet database accept --server HOST:PORT`,
  )
}
