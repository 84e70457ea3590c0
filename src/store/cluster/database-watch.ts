/**
 * Watches all servers that the URL of a Postgres names, and says what an operator should know of them.
 *
 * Owns: how often they are asked, what is logged, notes and metrics. Does not own: which server is used (store/engines/): it leaves one that is
 * older as soon as a newer one was seen.
 */
import { Gauge, type Registry } from 'prom-client'
import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { DatabaseServers, SurveyedServer } from '../engines/postgres.ts'
import type { Store } from '../store.ts'
import { clusterLimits } from './limits.ts'
import { type DatabaseProblem, listProblems } from './server-problems.ts'

export type DatabaseWatchOptions = { readonly servers: DatabaseServers; readonly clock: Clock; readonly logger: Logger }

export class DatabaseWatch implements Service {
  readonly name = 'database watch'
  readonly #options: DatabaseWatchOptions
  readonly #polling: Periodic
  #servers: readonly SurveyedServer[] = []
  #problems: readonly DatabaseProblem[] = []

  constructor(options: DatabaseWatchOptions) {
    const { clock, logger } = options
    this.#options = options
    this.#polling = new Periodic({
      ...{ name: this.name, intervalMs: clusterLimits.databaseWatchMs, runAtStart: true, clock, logger },
      run: () => this.#survey(),
      failure: 'database watch failed',
      recovery: 'database watch restored',
      level: 'warn',
    })
  }

  get servers(): readonly SurveyedServer[] {
    return this.#servers
  }

  /** Whether the database confirms no change, so that nothing can be recorded. */
  get waitsForStandby(): boolean {
    return this.#problems.some(({ kind }) => kind === 'no_standby')
  }

  /** Sentences for `/readyz`, which anybody may read: they name no host. */
  get notes(): readonly string[] {
    return this.#problems.map(({ note }) => note)
  }

  start(): Promise<void> {
    return this.#polling.start()
  }

  stop(): Promise<void> {
    return this.#polling.stop()
  }

  /** Logs each problem when it begins and when it has ended. */
  async #survey(): Promise<void> {
    const { servers, logger } = this.#options
    this.#servers = await servers.survey()
    // A problem of servers that cannot be asked has not ended.
    if (!this.#servers.some(({ state }) => state === 'writable' || state === 'older')) return
    const before = this.#problems
    this.#problems = listProblems(this.#servers)
    for (const { kind, event, level, message, remedy } of this.#problems)
      if (!before.some((known) => known.kind === kind && known.message === message))
        logger[level]({ detail: message, remedy }, event)
    for (const { kind, event } of before)
      if (!this.#problems.some((now) => now.kind === kind)) logger.notice({ ended: event }, 'problem of the database ended')
  }
}

/** Returns undefined for a database with a single address: there is nothing to compare. */
export function createDatabaseWatch(
  { servers }: Store,
  { clock, logger, registry }: Omit<DatabaseWatchOptions, 'servers'> & { readonly registry: Registry },
): DatabaseWatch | undefined {
  const watch = servers === undefined || servers.count < 2 ? undefined : new DatabaseWatch({ servers, clock, logger })
  registerServerMetrics(registry, watch)
  return watch
}

const states = ['writable', 'older', 'standby', 'unreachable'] as const

function registerServerMetrics(registry: Registry, watch: Pick<DatabaseWatch, 'servers' | 'waitsForStandby'> | undefined): void {
  new Gauge({
    name: 'inlet_database_servers',
    help: 'servers in INLET_DATABASE_URL by state, if it names several; if more than one is writable or older, two of them take writes',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      if (watch === undefined) return
      const found = Map.groupBy(watch.servers, ({ state }) => state)
      for (const state of states) this.set({ state }, found.get(state)?.length ?? 0)
    },
  })
  new Gauge({
    name: 'inlet_database_waits_for_standby',
    help: '1 while the database confirms no change, because a synchronous standby is away; 0 if INLET_DATABASE_URL names one server',
    registers: [registry],
    collect() {
      this.set(watch?.waitsForStandby === true ? 1 : 0)
    },
  })
}
