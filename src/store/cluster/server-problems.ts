/** Finds problems with the servers of a database, and says what an operator should do. */
import type { SurveyedServer } from '../engines/postgres.ts'
import type { Synchronous } from '../engines/server-survey.ts'

export type DatabaseProblem = {
  readonly kind: 'two_writable' | 'no_standby' | 'asynchronous' | 'no_timeline'
  readonly level: 'error' | 'warn' | 'info'
  /** Event of the log. */
  readonly event: string
  /** For the operator, with the hosts. */
  readonly message: string
  readonly remedy: string
  /** The same for anybody: without hosts. */
  readonly note: string
}

export function listProblems(servers: readonly SurveyedServer[]): readonly DatabaseProblem[] {
  const found = [
    describeTwo(servers),
    describeMissingStandby(servers),
    describeAsynchronous(servers),
    describeUnknownTimelines(servers),
  ]
  return found.flatMap((each) => each ?? [])
}

function describeTwo(servers: readonly SurveyedServer[]): DatabaseProblem | undefined {
  const writable = servers.filter(({ state }) => state === 'writable')
  const older = servers.filter(({ state }) => state === 'older')
  if (writable.length + older.length < 2) return undefined
  const common = {
    kind: 'two_writable',
    level: 'error',
    event: 'two servers of the database take writes',
    note: 'two servers of the database take writes: inlet database show says which, and what to do',
  } as const
  const used = writable.find(({ isUsed }) => isUsed) ?? writable[0]
  if (writable.length === 1 && used !== undefined)
    return {
      ...common,
      message: `${listServers(older)} ${older.length === 1 ? 'takes writes, and is' : 'take writes, and are'} older than ${nameOf(used)}${isAcceptedSince(older, used) ? ', which was accepted since' : ''}: control uses only ${used.host}`,
      remedy: `stop ${older.map(({ host }) => host).join(' and ')}, and make it a standby of ${used.host} (pg_rewind, or a new copy)`,
    }
  return {
    ...common,
    message: `${listServers([...writable, ...older])} take writes, and which of them is right is not known: this process uses ${used?.host ?? 'none'}`,
    remedy:
      'stop the wrong one, and make it a standby of the other one (pg_rewind, or a new copy); until then: inlet database accept --server HOST:PORT, with the right one',
  }
}

/** Whether an acceptance makes these servers older: one that they know, too, does not. Otherwise it is their timelines. */
function isAcceptedSince(older: readonly SurveyedServer[], { standing: newest }: SurveyedServer): boolean {
  return older.every(({ standing }) => standing !== undefined && newest !== undefined && standing.generation < newest.generation)
}

const findUsed = (servers: readonly SurveyedServer[]) => servers.find(({ isUsed, state }) => isUsed && state === 'writable')

/** A server without its synchronous standbys reads, but lets each change wait until they are there. */
export function describeMissingStandby(servers: readonly SurveyedServer[]): DatabaseProblem | undefined {
  const used = findUsed(servers)
  const { synchronous } = used ?? {}
  if (used === undefined || synchronous?.standbys === undefined || whyAsynchronous(synchronous) !== undefined) return undefined
  const needed = countNeeded(synchronous.standby_names)
  if (synchronous.standbys >= needed) return undefined
  return {
    kind: 'no_standby',
    level: 'error',
    event: 'the database confirms no change',
    message: `${used.host} confirms no change: ${synchronous.standbys} of ${needed} synchronous standbys are connected`,
    remedy: `start the standby, or let ${used.host} go on alone: ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf();`,
    note: 'the database confirms no change until its synchronous standby is back: inlet database show says what to do',
  }
}

/** Returns 2 for `ANY 2 (*)` and `FIRST 2 (a, b, c)`, and 1 for a list alone. */
function countNeeded(standbyNames: string): number {
  return Number(/^\s*(?:first\s+|any\s+)?(\d+)\s*\(/i.exec(standbyNames)?.[1] ?? 1)
}

function whyAsynchronous({ standby_names, commit }: Synchronous): string | undefined {
  if (standby_names === '') return 'synchronous_standby_names is empty'
  return ['off', 'local'].includes(commit) ? `synchronous_commit is ${commit}` : undefined
}

/** A server that confirms a change before another one has it may lose it in a failover. */
function describeAsynchronous(servers: readonly SurveyedServer[]): DatabaseProblem | undefined {
  const used = findUsed(servers)
  const reason = used?.synchronous === undefined || servers.length < 2 ? undefined : whyAsynchronous(used.synchronous)
  if (used === undefined || reason === undefined) return undefined
  return {
    kind: 'asynchronous',
    level: 'warn',
    event: 'a failover of the database may lose changes',
    message: `${used.host} confirms changes that no standby has: ${reason}`,
    remedy: 'set synchronous_standby_names and synchronous_commit as in docs/machines.md',
    note: `a failover of the database may lose changes that were confirmed: ${reason}`,
  }
}

function describeUnknownTimelines(servers: readonly SurveyedServer[]): DatabaseProblem | undefined {
  const silent = servers.filter(({ state, standing }) => state === 'writable' && standing === undefined)
  if (silent.length === 0) return undefined
  return {
    kind: 'no_timeline',
    level: 'info',
    event: 'the database does not tell its timeline',
    message: `${listServers(silent)} tells no timeline: an old primary that returns is not recognised, only two that take writes`,
    remedy: 'let the user of Inlet execute pg_control_system, pg_walfile_name and pg_current_wal_lsn, if the server has them',
    note: 'the database tells no timeline: an old primary that returns is not recognised',
  }
}

/** Returns for example `db-1:5432 (timeline 1) and db-2:5432 (timeline 1)`. */
export function listServers(servers: readonly SurveyedServer[]): string {
  return servers.map(nameOf).join(' and ')
}

function nameOf({ host, standing }: SurveyedServer): string {
  return standing === undefined ? host : `${host} (timeline ${standing.timeline})`
}
