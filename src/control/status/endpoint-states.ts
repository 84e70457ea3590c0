/**
 * Computes the state of endpoints.
 *
 * Owns: placement (on every node of the endpoint's region), the addresses to send to, the status. Does not own: nodes, resources.
 * The leader checks DNS and certificates (naming/checks/).
 * Law: once reported served, an endpoint never returns to `deploying`. So `provisioned_at` is stored before the first report.
 */
import type { Clock } from '#lib/clock.ts'
import { namedId } from '#lib/named-id.ts'
import { viewsWriteNothing } from '#model/binding.ts'
import type { Endpoint, EndpointStatus } from '#model/endpoint.ts'
import type { NamingFacts } from '#naming/checks/naming.ts'
import { type DnsKeeper, namingOf, readSeen, type Seen } from '#naming/checks/seen.ts'
import { type HostOptions, ingestHost } from '#naming/ingest-host.ts'
import { type ControlOutages, discountControlOutages } from '#naming/outages.ts'
import { servingNodes } from '#naming/serving-nodes.ts'
import { listOpenLosses, listOpenLossesOfAccount } from '#store/commits/losses.ts'
import { findMissing, listMissingCommits, type MissingCommits } from '#store/commits/missing-commits.ts'
import { findEndpointsWithViews } from '#store/endpoints/bindings.ts'
import { type EndpointFacts, listEndpointFacts, markProvisioned, type StoredEndpoint } from '#store/endpoints/endpoints.ts'
import { type DnsCheck, listDnsChecks } from '#store/naming/dns-checks.ts'
import {
  findLargestLag,
  type LargestLag,
  listBlockedLogs,
  listBlockedLogsOfAccount,
  listDegradingLags,
  listLags,
} from '#store/nodes/node-reports.ts'
import { listNodeRegions, listNodes, listNodesOnceIn, type NodeFacts } from '#store/nodes/nodes.ts'
import type { Store } from '#store/store.ts'
import { deliveryLagSecondsMax, nodeGoneSeconds } from '../limits.ts'
import { type DrainHold, type Draining, listDrainHolds, listHoldReasons } from './drain.ts'
import { ingestUrl } from './ingest-url.ts'
import { describeSegments, sumLags } from './reports.ts'
import { computeStatus, presentNodes, type Reports } from './status.ts'

export type EndpointState = Pick<
  Endpoint,
  'status' | 'status_reasons' | 'lag' | 'dns_ipv4' | 'dns_ipv6' | 'ingest_host' | 'ingest_url'
>

export type EndpointStatesOptions = {
  readonly store: Store
  readonly clock: Clock
  readonly hosts: HostOptions
  readonly baseUrl: string
  readonly dnsKeeper: DnsKeeper
  readonly outages: Pick<ControlOutages, 'recent'>
}

/** The nodes of some regions at one point in time. */
export type Observation = {
  readonly nowMs: number
  readonly nodes: ReadonlyMap<string, readonly NodeFacts[]>
  /** The log with the most bytes on each node whose disk is full, by node id. */
  readonly largestLags: ReadonlyMap<string, LargestLag>
  readonly seen: Seen
  /** Regions that have nodes; empty if each observed region has some. */
  readonly otherRegions: readonly string[]
  readonly missing: readonly MissingCommits[]
}

const servedStatuses: ReadonlySet<EndpointStatus | undefined> = new Set<EndpointStatus>(['active', 'degraded'])

export class EndpointStates {
  readonly #options: EndpointStatesOptions

  constructor(options: EndpointStatesOptions) {
    this.#options = options
  }

  async observe(regions: readonly string[]): Promise<Observation> {
    const { store, clock, outages } = this.#options
    const stored = await listNodes(store.db, [...new Set(regions)])
    const nowMs = clock.now()
    const nodes = presentNodes(discountControlOutages(stored, outages.recent), nowMs)
    const largestLags = new Map<string, LargestLag>()
    for (const { id, ingest } of nodes) {
      const largest = ingest?.disk_full === true ? await findLargestLag(store.db, id) : undefined
      if (largest !== undefined) largestLags.set(id, largest)
    }
    const serving = servingNodes({ since_epoch: Number.NEGATIVE_INFINITY }, nodes, nowMs)
    const seen = await readSeen(store.db, nodes, serving)
    const byRegion = Map.groupBy(nodes, ({ region }) => region)
    const empty = regions.filter((region) => !byRegion.has(region))
    const otherRegions = empty.length === 0 ? [] : (await listNodeRegions(store.db)).filter((region) => !empty.includes(region))
    const missing = await listMissingCommits(store.db)
    return { nowMs, nodes: byRegion, largestLags, seen, otherRegions, missing }
  }

  /** Returns where a client of the endpoint sends to now. */
  async findIngestUrl(endpoint: StoredEndpoint): Promise<string> {
    const { nowMs, nodes } = await this.observe([endpoint.region])
    const known = nodes.get(endpoint.region) ?? []
    return this.#addressOf(endpoint, known, servingNodes(endpoint, known, nowMs)).ingest_url
  }

  #addressOf(
    endpoint: StoredEndpoint,
    known: readonly NodeFacts[],
    serving: readonly NodeFacts[],
  ): Pick<EndpointState, 'ingest_host' | 'ingest_url'> {
    const { baseUrl, hosts } = this.#options
    const reached = serving.length > 0 ? serving : known
    const ingest_host = ingestHost(endpoint, reached, hosts)
    const isName = hosts.baseDomain !== null
    return { ingest_host, ingest_url: ingestUrl({ id: endpoint.id, ingest_host }, reached, { isName, baseUrl }) }
  }

  /** Returns the state of each endpoint, by id. */
  async computeStates(endpoints: readonly StoredEndpoint[], observed?: Observation): Promise<ReadonlyMap<string, EndpointState>> {
    const observation = observed ?? (await this.observe(endpoints.map(({ region }) => region)))
    const ids = endpoints.map(({ id }) => id)
    const { db } = this.#options.store
    const lags = Map.groupBy(await listLags(db, ids), ({ endpoint_id }) => endpoint_id)
    const blocked = Map.groupBy(await listBlockedLogs(db, ids), ({ endpoint_id }) => endpoint_id)
    const losses = Map.groupBy(await listOpenLosses(db, ids), ({ endpoint_id }) => endpoint_id)
    const holds = await this.listDrainHolds(
      endpoints.flatMap(({ draining_epoch, ...endpoint }) => (draining_epoch === null ? [] : [{ ...endpoint, draining_epoch }])),
    )
    const idle = await this.#findIdleViews(endpoints)
    const dnsChecks = await this.#listDnsChecks(ids)
    const states = new Map(
      endpoints.map((endpoint) => {
        const naming = this.#namingOf(endpoint, dnsChecks, observation)
        const reports = {
          lags: lags.get(endpoint.id) ?? [],
          blocked: blocked.get(endpoint.id) ?? [],
          losses: losses.get(endpoint.id) ?? [],
          naming,
        }
        const state = this.#computeState(endpoint, reports, observation)
        const reasons = listHoldReasons(holds.get(endpoint.id) ?? [])
        const notes = idle.has(endpoint.id) ? [viewsWriteNothing] : []
        return [endpoint.id, { ...state, status_reasons: [...state.status_reasons, ...reasons, ...notes] }]
      }),
    )
    await this.#noteServed(endpoints, states)
    return states
  }

  async #noteServed(endpoints: readonly StoredEndpoint[], states: ReadonlyMap<string, EndpointState>): Promise<void> {
    const isServed = (id: string) => servedStatuses.has(states.get(id)?.status)
    const served = endpoints.filter(({ id, provisioned_at }) => provisioned_at === null && isServed(id))
    const { store, clock } = this.#options
    await markProvisioned(
      store.db,
      served.map(({ id }) => id),
      clock.now(),
    )
  }

  /** Returns what holds each draining endpoint, by id: nothing once it is drained. */
  async listDrainHolds(draining: readonly Draining[]): Promise<ReadonlyMap<string, readonly DrainHold[]>> {
    if (draining.length === 0) return new Map()
    const { store, clock } = this.#options
    const lags = await listLags(
      store.db,
      draining.map(({ id }) => id),
    )
    const regions = [...new Set(draining.map(({ region }) => region))]
    const nodes = await listNodesOnceIn(store.db, regions, [...new Set(lags.map(({ node_id }) => node_id))])
    const byEndpoint = Map.groupBy(lags, ({ endpoint_id }) => endpoint_id)
    const nowMs = clock.now()
    return new Map(
      draining.map((endpoint) => [endpoint.id, listDrainHolds(endpoint, nodes, byEndpoint.get(endpoint.id) ?? [], nowMs)]),
    )
  }

  /**
   * Returns the ids of the account's endpoints with a computed status, newest first, and the facts behind it. The status depends on
   * facts about nodes, which cannot be indexed: this reads few columns per endpoint, and only the lags that matter.
   */
  async listIdsWithStatus(
    account_id: string,
    status: EndpointStatus,
    name?: string,
  ): Promise<{ readonly ids: readonly string[]; readonly observation: Observation }> {
    const { db } = this.#options.store
    const endpoints = await listEndpointFacts(db, account_id, name)
    const observation = await this.observe(endpoints.map(({ region }) => region))
    const { nodes, nowMs, missing } = observation
    const degrading = await listDegradingLags(db, account_id, {
      sealedBefore: nowMs - deliveryLagSecondsMax * 1000,
      reportedBefore: nowMs - nodeGoneSeconds * 1000,
    })
    const lags = Map.groupBy(degrading, ({ endpoint_id }) => endpoint_id)
    const blocked = Map.groupBy(await listBlockedLogsOfAccount(db, account_id), ({ endpoint_id }) => endpoint_id)
    const losses = Map.groupBy(await listOpenLossesOfAccount(db, account_id), ({ endpoint_id }) => endpoint_id)
    const dnsChecks = await this.#listDnsChecks(endpoints.map(({ id }) => id))
    const matching = endpoints.filter((endpoint) => {
      const naming = this.#namingOf(endpoint, dnsChecks, observation)
      const reports = {
        lags: lags.get(endpoint.id) ?? [],
        blocked: blocked.get(endpoint.id) ?? [],
        diskCauses: new Map(),
        naming,
        otherRegions: [],
        losses: losses.get(endpoint.id) ?? [],
        missingCommits: findMissing(missing, endpoint.region, account_id),
      }
      return computeStatus(endpoint, nodes.get(endpoint.region) ?? [], reports, nowMs).status === status
    })
    return { ids: matching.map(({ id }) => id), observation }
  }

  /** Returns what was last seen of the names of these endpoints, by id. */
  async #listDnsChecks(ids: readonly string[]): Promise<ReadonlyMap<string, DnsCheck>> {
    const { store, dnsKeeper } = this.#options
    if (dnsKeeper === 'nobody') return new Map()
    return new Map((await listDnsChecks(store.db, ids)).map((check) => [check.endpoint_id, check]))
  }

  #namingOf(endpoint: EndpointFacts, checks: ReadonlyMap<string, DnsCheck>, { nodes, seen }: Observation): NamingFacts {
    const { dnsKeeper, hosts } = this.#options
    const naming = { dnsKeeper, baseDomain: hosts.baseDomain }
    return namingOf(endpoint, naming, seen, nodes.get(endpoint.region) ?? [], checks.get(endpoint.id))
  }

  /** Returns the ids of endpoints with attached views that no output format asks for. Nothing is broken, so their status stays. */
  #findIdleViews(endpoints: readonly StoredEndpoint[]): Promise<ReadonlySet<string>> {
    const without = endpoints.filter(({ output_formats }) => output_formats?.includes('parquet_views') === false)
    return findEndpointsWithViews(
      this.#options.store.db,
      without.map(({ id }) => id),
    )
  }

  #computeState(
    endpoint: StoredEndpoint,
    reports: Omit<Reports, 'diskCauses' | 'otherRegions' | 'missingCommits'>,
    observation: Observation,
  ): EndpointState {
    const { nowMs, largestLags, otherRegions, missing } = observation
    const nodes = observation.nodes.get(endpoint.region) ?? []
    const diskCauses = new Map([...largestLags].map(([id, largest]) => [id, explainFullDisk(largest, endpoint.account_id)]))
    const missingCommits = findMissing(missing, endpoint.region, endpoint.account_id)
    const { status, reasons } = computeStatus(endpoint, nodes, { ...reports, diskCauses, otherRegions, missingCommits }, nowMs)
    const serving = servingNodes(endpoint, nodes, nowMs)
    // A name that Inlet publishes has a bounded number of addresses, and not all that a node reports.
    const publishes = this.#options.dnsKeeper === 'inlet'
    const published = publishes ? (observation.seen.wantedAddresses.of(endpoint) ?? { A: [], AAAA: [] }) : undefined
    return {
      status,
      status_reasons: [...reasons],
      lag: sumLags(reports.lags, nowMs),
      // Nodes of one machine may share its addresses.
      dns_ipv4: [...(published?.A ?? new Set(serving.flatMap(({ ipv4 }) => ipv4)))],
      dns_ipv6: [...(published?.AAAA ?? new Set(serving.flatMap(({ ipv6 }) => ipv6)))],
      ...this.#addressOf(endpoint, nodes, serving),
    }
  }
}

/** Says what fills the disk of a node. An account is told the reasons of its own endpoints only. */
function explainFullDisk(largest: LargestLag, account_id: string): string {
  if (largest.account_id !== account_id) return 'most of it is data of another account; GET /v1/nodes tells the operator why'
  return `most of it is data of endpoint ${namedId(largest.endpoint_id, largest.endpoint_name)}: ${largest.blocked_by ?? describeSegments(largest)}`
}
