/**
 * Decides which control process does what only one of them may do: the leader.
 *
 * Owns: whether this process leads, and the signal that ends the work of its term. Does not own: the lock (store/engines/leader-lock.ts), the
 * check of each transaction (store/leader-term.ts).
 * Law: leadership ends at once if the connection that holds the lock ends, or if the database did not confirm it for `leadershipProofMs`,
 * which is shorter than the time after which Postgres gives the lock to another process. Work that is already running may overlap with
 * that of the next leader until it notices its signal. What it then writes to the database is refused; what it sends elsewhere must be
 * idempotent.
 */
import { Gauge, type Registry } from 'prom-client'
import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { LeaderLock } from '#store/engines/leader-lock.ts'
import type { Store } from '#store/store.ts'
import { withinTerm } from '../leader-term.ts'
import { clusterLimits } from './limits.ts'

type Work = (signal: AbortSignal) => Promise<void>

type Term = { readonly number: number; readonly over: AbortController }

export interface Leadership extends Service {
  readonly isLeader: boolean
  /** Counts the leaders of this database; 0 while another process leads, and on SQLite. */
  readonly term: number
  /** Returns work for a `Periodic`: it does nothing while another process leads, and its signal also aborts when leadership ends. */
  whileLeading(work: Work): Work
}

export type LeadershipOptions = {
  readonly newLock: (onLost: () => void) => LeaderLock
  readonly clock: Clock
  readonly logger: Logger
}

export function createLeadership({ newLeaderLock }: Store, options: Omit<LeadershipOptions, 'newLock'>): Leadership {
  return newLeaderLock === undefined ? soleLeader : new ElectedLeadership({ newLock: newLeaderLock, ...options })
}

/** On SQLite there is no other process. */
const soleLeader: Leadership = {
  name: 'leadership',
  isLeader: true,
  term: 0,
  whileLeading: (work) => work,
  start: async () => undefined,
  stop: async () => undefined,
}

export class ElectedLeadership implements Leadership {
  readonly name = 'leadership'
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #lock: LeaderLock
  readonly #polling: Periodic
  #term: Term | undefined
  #provedAt = Number.NEGATIVE_INFINITY

  constructor({ newLock, clock, logger }: LeadershipOptions) {
    this.#clock = clock
    this.#logger = logger
    this.#lock = newLock(() => this.#end('the connection to the database was lost'))
    this.#polling = new Periodic({
      name: this.name,
      intervalMs: clusterLimits.leadershipPollMs,
      run: () => this.#renew(),
      failure: 'leadership check failed',
      recovery: 'leadership check restored',
      level: 'warn',
      clock,
      logger,
    })
  }

  get isLeader(): boolean {
    return this.#term !== undefined && this.#clock.monotonic() - this.#provedAt < clusterLimits.leadershipProofMs
  }

  get term(): number {
    return this.#term === undefined || !this.isLeader ? 0 : this.#term.number
  }

  whileLeading(work: Work): Work {
    return async (signal) => {
      const term = this.#term
      if (term === undefined || !this.isLeader) return
      const over = term.over.signal
      try {
        const within = { term: term.number, onOver: () => this.#endBecauseOfLater(term) }
        await withinTerm(within, () => work(AbortSignal.any([signal, over])))
      } catch (error) {
        // The next leader does what this work left undone.
        if (!over.aborted) throw error
      }
    }
  }

  /** Resolves when this process knows whether it leads. */
  async start(): Promise<void> {
    await this.#renew().catch(() => undefined)
    await this.#polling.start()
  }

  /** Lets another process lead. Stop the work before. */
  async stop(): Promise<void> {
    await this.#polling.stop()
    this.#end('this process stops')
    await this.#lock.close()
  }

  async #renew(): Promise<void> {
    const askedAt = this.#clock.monotonic()
    try {
      const number = await this.#lock.hold()
      this.#provedAt = askedAt
      if (number !== this.#term?.number)
        this.#end(number === undefined ? 'another process leads' : 'another process led meanwhile')
      if (number !== undefined && this.#term === undefined) {
        this.#term = { number, over: new AbortController() }
        this.#logger.info({ term: number }, 'leadership acquired')
      }
    } catch (error) {
      this.#end('the database does not confirm it')
      throw error
    }
  }

  /** The database knows a later leader, although the lock seems to be held. */
  #endBecauseOfLater(term: Term): void {
    if (this.#term !== term) return
    this.#end('a later leader has begun')
    this.#lock.close().catch(() => undefined)
  }

  #end(reason: string): void {
    if (this.#term === undefined) return
    const { number, over } = this.#term
    over.abort()
    this.#term = undefined
    this.#logger.info({ reason, term: number }, 'leadership lost')
  }
}

export function registerLeadershipMetric(registry: Registry, leadership: Pick<Leadership, 'isLeader' | 'term'>): void {
  new Gauge({
    name: 'inlet_control_leader_term',
    help: 'how many leaders the database has had, in the process that leads; 0 in others, and on SQLite',
    registers: [registry],
    collect() {
      this.set(leadership.term)
    },
  })
  new Gauge({
    name: 'inlet_control_leader',
    help: '1 if this control process does what only one may do, otherwise 0',
    registers: [registry],
    collect() {
      this.set(leadership.isLeader ? 1 : 0)
    },
  })
}
