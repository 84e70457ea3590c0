/**
 * Publishes the addresses of the nodes that serve each endpoint.
 *
 * Owns: when records are sent, and what happens after a failure. Does not own: which addresses they should have (wanted.ts), the protocol (a
 * `DnsProvider`).
 * Law: only the leader publishes. Everything it needs is in the database, so the next leader continues where this one stopped. An attempt
 * that it left behind is repeated only after it must have ended.
 */
import type { Registry } from 'prom-client'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { observableMetrics } from '#lib/metrics.ts'
import { Periodic } from '#lib/periodic.ts'
import { systemRandom } from '#lib/random.ts'
import type { Logger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { currentEpoch } from '#store/cluster/epoch.ts'
import type { Leadership } from '#store/cluster/leadership.ts'
import {
  type DnsRecord,
  forgetOtherTargets,
  listDnsRecords,
  listNamedEndpoints,
  type Removal,
  recordPublished,
  recordSending,
  recordUnpublished,
  sendAgain,
} from '#store/naming/dns-records.ts'
import { listNodeRegions, listNodes, type NodeFacts } from '#store/nodes/nodes.ts'
import { type Store, transact } from '#store/store.ts'
import { type ControlOutages, discountControlOutages } from '../outages.ts'
import { hasValidCredential, servingNodes } from '../serving-nodes.ts'
import { dnsLimits } from './limits.ts'
import { batchesOf, type PlannedChange, planChanges } from './plan.ts'
import { type DnsProvider, RecordsRejected } from './provider.ts'
import { addressesOf } from './wanted.ts'

export type DnsPublisherOptions = {
  readonly store: Store
  readonly provider: DnsProvider
  /** After an outage of control, nodes that have not spoken yet keep their addresses. */
  readonly outages: Pick<ControlOutages, 'recent'>
  readonly baseDomain: string
  readonly ttlSeconds: number
  readonly clock: Clock
  readonly logger: Logger
}

export function createDnsPublishing(
  publisher: DnsPublisher,
  leadership: Pick<Leadership, 'whileLeading'>,
  { clock, logger }: Pick<DnsPublisherOptions, 'clock' | 'logger'>,
): Periodic {
  return new Periodic({
    name: 'dns',
    intervalMs: dnsLimits.passMs,
    runAtStart: true,
    run: leadership.whileLeading((signal) => publisher.pass(signal)),
    failureDelay: { msMax: dnsLimits.outageDelayMsMax, random: systemRandom },
    failure: 'DNS records not published',
    recovery: 'DNS records published again',
    level: 'warn',
    clock,
    logger,
  })
}

export class DnsPublisher {
  readonly #options: DnsPublisherOptions
  /** State that the last pass saw, to skip a pass if nothing changed. */
  #seen = ''
  /** When the next pass is due although nothing that it sees has changed. */
  #nextPassAt = 0
  #passedAt = Number.NEGATIVE_INFINITY
  #pending = 0
  readonly #counts = { published: 0, rejected: 0, failed: 0 }

  constructor(options: DnsPublisherOptions) {
    this.#options = options
  }

  registerMetrics(registry: Registry): void {
    const { gauge, counters } = observableMetrics(registry)
    gauge('inlet_dns_pending_changes', 'record sets that DNS does not have yet; 0 in processes that do not lead', () =>
      this.#leads() ? this.#pending : 0,
    )
    counters('inlet_dns_changes_total', 'record sets that were sent to DNS, by result', 'result', () =>
      Object.entries(this.#counts),
    )
  }

  /** How long the name servers may take to show what was published. */
  get settleSeconds(): number {
    return this.#options.provider.settleSeconds
  }

  /** Publishes the records of these names again in the next pass: the zone has lost them. */
  async sendAgain(names: readonly string[]): Promise<void> {
    await transact(this.#options.store, (db) => sendAgain(db, names))
    this.#seen = ''
  }

  /** Sends what differs. Throws if the service cannot be used. */
  async pass(signal: AbortSignal): Promise<void> {
    // Another process may have led since.
    if (!this.#leads()) this.#seen = ''
    let hasMore = true
    while (hasMore) hasMore = await this.#publishSome(signal)
  }

  /** Returns whether more could be sent at once. Before that, what is wanted is computed again: it may have changed meanwhile. */
  async #publishSome(signal: AbortSignal): Promise<boolean> {
    const { store, outages, baseDomain, ttlSeconds: ttl, clock } = this.#options
    const nowMs = clock.now()
    const stored = await listNodes(store.db, await listNodeRegions(store.db))
    const nodes = servingNodes({ since_epoch: Number.NEGATIVE_INFINITY }, discountControlOutages(stored, outages.recent), nowMs)
    const trusted = stored.filter(hasValidCredential)
    const seen = JSON.stringify([
      await currentEpoch(store.db),
      nodes.map(pickServing),
      trusted.map((node) => [node.region, addressesOf(node)]),
    ])
    this.#passedAt = clock.monotonic()
    const isQuiet = nowMs < this.#nextPassAt && nowMs >= this.#nextPassAt - dnsLimits.fullPassMs
    if (seen === this.#seen && isQuiet) return false
    const [endpoints, records] = [await listNamedEndpoints(store.db), await this.#listRecords()]
    const { due, nextAt, pending } = planChanges({ endpoints, nodes, trusted, records, baseDomain, ttl, nowMs })
    this.#pending = pending
    this.#seen = due.length === 0 ? seen : ''
    this.#nextPassAt = Math.min(nowMs + dnsLimits.fullPassMs, nextAt)
    const batches = [...batchesOf(due)]
    for (const batch of batches.slice(0, dnsLimits.passBatchesMax)) {
      await this.#send(batch, signal)
      this.#passedAt = clock.monotonic()
    }
    return batches.length > dnsLimits.passBatchesMax
  }

  #leads(): boolean {
    return this.#options.clock.monotonic() - this.#passedAt < dnsLimits.passGapMsMax
  }

  async #listRecords(): Promise<readonly DnsRecord[]> {
    const { store, provider, logger } = this.#options
    const records = await listDnsRecords(store.db)
    const others = [...new Set(records.map(({ target }) => target))].filter((target) => target !== provider.target)
    if (others.length === 0) return records
    const forgotten = await transact(store, (db) => forgetOtherTargets(db, provider.target))
    logger.warn({ forgotten, others }, 'DNS records of another provider forgotten')
    return records.filter(({ target }) => target === provider.target)
  }

  async #send(batch: readonly PlannedChange[], signal: AbortSignal): Promise<void> {
    const { store, provider, ttlSeconds: ttl, clock } = this.#options
    signal.throwIfAborted()
    const attempt = newId()
    const rows = batch.map(({ values, failures: _, ...change }) => ({ ...change, sent: values }))
    const [begunAt, retryAt] = [clock.monotonic(), clock.now() + provider.applyTimeoutMs]
    await transact(store, (db) => recordSending(db, rows, { attempt, target: provider.target, retryAt }))
    const leftMs = begunAt + provider.applyTimeoutMs - clock.monotonic()
    // This process stood still. Another one may lead by now, and may have repeated the attempt with newer values.
    if (leftMs <= 0) return
    const changes = batch.map(({ name, type, values }) => ({ name, type, values, ttl }))
    try {
      await provider.apply(changes, AbortSignal.any([signal, clock.timeout(leftMs)]))
    } catch (error) {
      signal.throwIfAborted()
      await this.#recordFailure(attempt, batch, error)
      return
    }
    const lingerMs = (ttl + provider.settleSeconds) * 1000
    const confirmed = { ttl, removals: removalsOf(batch), lingerMs, now: clock.now() }
    await transact(store, (db) => recordPublished(db, attempt, confirmed))
    this.#counts.published += batch.length
    this.#pending -= batch.length
  }

  async #recordFailure(attempt: string, batch: readonly PlannedChange[], failure: unknown): Promise<void> {
    const { store, clock, logger } = this.#options
    const error = errorMessage(failure)
    const isRejected = failure instanceof RecordsRejected
    this.#counts[isRejected ? 'rejected' : 'failed'] += batch.length
    if (!isRejected) {
      const passing = { error, retryAt: clock.now(), failures: null }
      await transact(store, (db) => recordUnpublished(db, attempt, passing))
      throw failure
    }
    // The changes of a batch have failed equally often.
    const failures = (batch[0]?.failures ?? 0) + 1
    const { rejectedDelayMsMin, rejectedDelayMsMax } = dnsLimits
    const delayMs = Math.min(rejectedDelayMsMax, rejectedDelayMsMin * 2 ** Math.min(failures - 1, 20))
    const rejected = { error, retryAt: clock.now() + delayMs, failures }
    await transact(store, (db) => recordUnpublished(db, attempt, rejected))
    logger.warn({ reason: error, names: batch.slice(0, 3).map(({ name }) => name), sets: batch.length }, 'DNS records rejected')
  }
}

/** Returns the addresses that the zone may have had before, and no longer has. */
function removalsOf(batch: readonly PlannedChange[]): readonly Removal[] {
  const removals = batch.flatMap(({ region, published, sent, values }) =>
    [...(published ?? []), ...(sent ?? [])]
      .filter((address) => !values.includes(address))
      .map((address) => ({ region, address })),
  )
  return [...new Map(removals.map((removal) => [`${removal.region} ${removal.address}`, removal])).values()]
}

/** Picks the fields of a serving node that decide which endpoints have its addresses. */
function pickServing({ id, region, ipv4, ipv6, ingest }: NodeFacts): unknown {
  return [id, region, ipv4, ipv6, ingest?.applied_epoch]
}
