/**
 * Looks in the buckets for what a new loss names: a machine that lost its place may have delivered more than it reported, and never come back.
 *
 * Owns: which endpoint is read when. Does not own: reading the buckets, which the composition passes in, and how a commit recovers a loss (the store).
 * Law: accounts take turns, endpoint by endpoint, and each is noted as soon as it is read. So an account with many losses, or with a bucket that
 * is slow or cannot be read, keeps back no other one. What could not be read stays said, with the next step.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { findMissing, listMissingCommits } from '#store/commits/missing-commits.ts'
import {
  type EndpointToSearch,
  findEndpointToSearch,
  listAccountsToSearch,
  noteSearch,
} from '#store/commits/unsearched-losses.ts'
import { type Store, transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits } from '../limits.ts'

export type SearchOptions = {
  readonly store: Store
  readonly stores: ObjectStores
  readonly clock: Clock
  readonly logger: Logger
  readonly endpoint: EndpointToSearch
  /** How long commits are kept. */
  readonly keptMs: number
  /** Why buckets cannot be read, by destination: these are not tried again. The search adds to it. */
  readonly unreadable: Map<string, string>
  /** Aborts when this process must not go on. */
  readonly signal: AbortSignal
  /** Aborts when the reading took too long. */
  readonly deadline: AbortSignal
}

/** Says for the account what was not read, and what to do. */
export type SearchedEndpoint = {
  readonly recorded: number
  /** Places that cannot be read now. */
  readonly unread: readonly string[]
  /** Places without any marker, although commits are there. */
  readonly empty: readonly string[]
  /** Places that cannot be read, and markers that were not accepted: another attempt finds the same. */
  readonly doubts: readonly string[]
}

/** Records what the nodes of a loss delivered of an endpoint, and nobody reported. Throws once `signal` aborts. */
export type SearchEndpoint = (options: SearchOptions) => Promise<SearchedEndpoint>

export type LossSearchOptions = Pick<ControlContext, 'store' | 'leadership' | 'clock' | 'logger'> &
  Pick<SearchOptions, 'stores' | 'keptMs'> & { readonly search: SearchEndpoint }

export function createLossSearch(options: LossSearchOptions): Periodic {
  const { leadership, clock, logger } = options
  const search = new LossSearch(options)
  return new Periodic({
    name: 'search for losses in buckets',
    intervalMs: controlLimits.lostCommitsCheckMs,
    run: leadership.whileLeading((signal) => search.run(signal)),
    failure: 'search for losses in buckets failed',
    recovery: 'search for losses in buckets restored',
    clock,
    logger,
  })
}

/** How far the endpoints of an account are read. */
type Pass = {
  /** The endpoint that was read last. */
  after: string
  readonly unreadable: Map<string, string>
  hasFailed: boolean
}

/** When an account is tried again, by the monotonic clock, and how long it waited for that. */
type Pause = { readonly until: number; readonly ms: number }

class LossSearch {
  readonly #options: Omit<LossSearchOptions, 'leadership'>
  readonly #passes = new Map<string, Pass>()
  readonly #pauses = new Map<string, Pause>()
  /** By account. */
  readonly #running = new Map<string, Promise<void>>()
  #lastAccount = ''

  constructor(options: LossSearchOptions) {
    this.#options = options
  }

  /** Reads until nothing is left that may be read now. */
  async run(signal: AbortSignal): Promise<void> {
    this.#passes.clear()
    try {
      while (!signal.aborted) {
        while (this.#running.size < controlLimits.accountsSearchedMax && (await this.#startNext(signal)));
        if (this.#running.size === 0) return
        await this.#waitForTurn(signal)
      }
    } finally {
      await Promise.all(this.#running.values())
    }
  }

  /** Waits until an account is read, and at most until new losses are looked for. */
  async #waitForTurn(signal: AbortSignal): Promise<void> {
    const waiting = new AbortController()
    const pause = sleep(this.#options.clock, controlLimits.lostCommitsCheckMs, AbortSignal.any([signal, waiting.signal]))
    await Promise.race([...this.#running.values(), pause])
    waiting.abort()
  }

  /** Returns whether there was an account whose turn it is. */
  async #startNext(signal: AbortSignal): Promise<boolean> {
    const { clock, store } = this.#options
    // By then the machine has ended its work.
    const before = clock.now() - controlLimits.fencedEndsMs
    const accounts = await this.#listReady(before)
    const next = accounts.find(([account_id]) => account_id > this.#lastAccount) ?? accounts[0]
    if (next === undefined) return false
    const [account_id, regions] = next
    this.#lastAccount = account_id
    const pass = this.#passes.get(account_id) ?? { after: '', unreadable: new Map(), hasFailed: false }
    this.#passes.set(account_id, pass)
    const endpoint = await findEndpointToSearch(store.db, { account_id, regions, after: pass.after, before })
    if (endpoint === undefined) {
      this.#endPass(account_id, pass)
      return true
    }
    const reading = this.#search(endpoint, pass, before, signal).finally(() => this.#running.delete(account_id))
    this.#running.set(account_id, reading)
    return true
  }

  /** Returns the accounts that neither are being read nor paused, with the regions in which no operator has to decide first. */
  async #listReady(before: number): Promise<readonly (readonly [account_id: string, regions: readonly string[]])[]> {
    const { clock, store } = this.#options
    const found = await listAccountsToSearch(store.db, before)
    const unsearched = new Set(found.map(({ account_id }) => account_id))
    for (const account_id of this.#pauses.keys()) if (!unsearched.has(account_id)) this.#pauses.delete(account_id)
    if (found.length === 0) return []
    const missing = await listMissingCommits(store.db)
    const ready = found.filter(
      ({ account_id, region }) =>
        !this.#running.has(account_id) &&
        clock.monotonic() >= (this.#pauses.get(account_id)?.until ?? 0) &&
        findMissing(missing, region, account_id)?.isAutomatic !== false,
    )
    const regions = Map.groupBy(ready, ({ account_id }) => account_id)
    return [...regions].map(([account_id, some]) => [account_id, some.map(({ region }) => region)] as const)
  }

  /** All endpoints of the account had their turn. It waits if one of them failed. */
  #endPass(account_id: string, { hasFailed }: Pass): void {
    this.#passes.delete(account_id)
    const { recoveryDelayMsMin, recoveryDelayMsMax } = controlLimits
    const ms = Math.min(recoveryDelayMsMax, Math.max(recoveryDelayMsMin, (this.#pauses.get(account_id)?.ms ?? 0) * 2))
    if (hasFailed) this.#pauses.set(account_id, { until: this.#options.clock.monotonic() + ms, ms })
    else this.#pauses.delete(account_id)
  }

  /** Never throws. */
  async #search(endpoint: EndpointToSearch, pass: Pass, before: number, signal: AbortSignal): Promise<void> {
    const { account_id, endpoint_id } = endpoint
    const { search, clock, logger, ...options } = this.#options
    const deadline = new AbortController()
    const cancel = clock.setTimer(() => deadline.abort(), controlLimits.searchMsMax)
    try {
      const searched = await search({
        ...{ ...options, clock, logger, endpoint, signal, deadline: deadline.signal },
        unreadable: pass.unreadable,
      })
      pass.after = endpoint_id
      await this.#note(endpoint, searched, pass, before)
    } catch (error) {
      pass.after = endpoint_id
      pass.hasFailed = true
      if (!signal.aborted)
        logger.error({ account_id, endpoint_id, error: errorMessage(error) }, 'search for losses in buckets failed; tried again')
    } finally {
      cancel()
    }
  }

  async #note(
    { account_id, endpoint_id, ids, until }: EndpointToSearch,
    { recorded, unread, empty, doubts }: SearchedEndpoint,
    pass: Pass,
    before: number,
  ): Promise<void> {
    const { store, clock, logger } = this.#options
    const now = clock.now()
    // A disk may be mounted again. Markers that were removed stay so.
    const failed = now - until < controlLimits.emptyBucketsMs ? [...unread, ...empty] : unread
    const problems = [...unread, ...empty, ...doubts]
    const shown = problems.slice(0, controlLimits.searchProblemsShown).join('; ')
    const problem = problems.length === 0 ? null : shown.slice(0, controlLimits.searchProblemCharacters)
    const searchedAt = failed.length === 0 ? now : null
    await transact(store, (db) => noteSearch(db, ids, { searchedAt, problem, before }))
    if (recorded > 0)
      logger.notice({ account_id, endpoint_id, recorded }, 'commits found in buckets that a lost node had not reported')
    if (problem !== null)
      logger.warn({ account_id, endpoint_id, problem, isTriedAgain: failed.length > 0 }, 'losses not looked for in all buckets')
    if (failed.length > 0) pass.hasFailed = true
  }
}
