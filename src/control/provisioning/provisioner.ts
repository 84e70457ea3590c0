/**
 * Provisions endpoints and computes their state.
 *
 * Owns: placement (on every node of the endpoint's region), the addresses to send to, the status. Does not own: nodes, resources.
 * DNS is static: the addresses of the serving nodes. Managed DNS and certificates would be added here as further facts.
 */
import type { Clock } from '#lib/clock.ts'
import type { DeliveryLag, Endpoint, EndpointStatus } from '#model/endpoint.ts'
import { listEndpointFacts, type StoredEndpoint } from '#store/endpoints.ts'
import { listDegradingLags, listLags, type NodeLag } from '#store/node-reports.ts'
import { listNodes, listNodesOnceIn, type NodeFacts } from '#store/nodes.ts'
import type { Store } from '#store/store.ts'
import { deliveryLagSecondsMax } from '../limits.ts'
import { type DrainHold, type Draining, listDrainHolds } from './drain.ts'
import { type HostOptions, ingestHost } from './ingest-host.ts'
import { computeStatus, presentNodes, servingNodes } from './status.ts'

export type EndpointState = Pick<Endpoint, 'status' | 'status_reasons' | 'lag' | 'dns_ipv4' | 'dns_ipv6' | 'ingest_host'>

export type ProvisionerOptions = { readonly store: Store; readonly clock: Clock; readonly hosts: HostOptions }

/** The nodes of some regions at one point in time. */
export type Observation = { readonly nowMs: number; readonly nodes: ReadonlyMap<string, readonly NodeFacts[]> }

export class Provisioner {
  readonly #options: ProvisionerOptions

  constructor(options: ProvisionerOptions) {
    this.#options = options
  }

  async observe(regions: readonly string[]): Promise<Observation> {
    const { store, clock } = this.#options
    const nowMs = clock.now()
    const nodes = presentNodes(await listNodes(store.db, [...new Set(regions)]), nowMs)
    return { nowMs, nodes: Map.groupBy(nodes, ({ region }) => region) }
  }

  /** Returns the state of each endpoint, by id. */
  async computeStates(endpoints: readonly StoredEndpoint[], observed?: Observation): Promise<ReadonlyMap<string, EndpointState>> {
    const observation = observed ?? (await this.observe(endpoints.map(({ region }) => region)))
    const ids = endpoints.map(({ id }) => id)
    const lags = Map.groupBy(await listLags(this.#options.store.db, ids), ({ endpoint_id }) => endpoint_id)
    const holds = await this.listDrainHolds(
      endpoints.flatMap(({ draining_epoch, ...endpoint }) => (draining_epoch === null ? [] : [{ ...endpoint, draining_epoch }])),
    )
    return new Map(
      endpoints.map((endpoint) => {
        const state = this.#computeState(endpoint, lags.get(endpoint.id) ?? [], observation)
        const reasons = (holds.get(endpoint.id) ?? []).map(({ reason }) => reason)
        return [endpoint.id, { ...state, status_reasons: [...state.status_reasons, ...reasons] }]
      }),
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
  ): Promise<{ readonly ids: readonly string[]; readonly observation: Observation }> {
    const { db } = this.#options.store
    const endpoints = await listEndpointFacts(db, account_id)
    const observation = await this.observe(endpoints.map(({ region }) => region))
    const { nodes, nowMs } = observation
    const degrading = await listDegradingLags(db, account_id, nowMs - deliveryLagSecondsMax * 1000)
    const lags = Map.groupBy(degrading, ({ endpoint_id }) => endpoint_id)
    const matching = endpoints.filter((endpoint) => {
      const present = nodes.get(endpoint.region) ?? []
      return computeStatus(endpoint, present, dropGoneNodes(present, lags.get(endpoint.id) ?? []), nowMs).status === status
    })
    return { ids: matching.map(({ id }) => id), observation }
  }

  #computeState(endpoint: StoredEndpoint, lags: readonly NodeLag[], { nodes: byRegion, nowMs }: Observation): EndpointState {
    const nodes = byRegion.get(endpoint.region) ?? []
    const present = dropGoneNodes(nodes, lags)
    const { status, reasons } = computeStatus(endpoint, nodes, present, nowMs)
    const serving = servingNodes(endpoint, nodes, nowMs)
    return {
      status,
      status_reasons: [...reasons],
      lag: sumLags(present, nowMs),
      dns_ipv4: serving.flatMap(({ ipv4 }) => ipv4),
      dns_ipv6: serving.flatMap(({ ipv6 }) => ipv6),
      ingest_host: ingestHost(endpoint, serving.length > 0 ? serving : nodes, this.#options.hosts),
    }
  }
}

/** The sum over all nodes. */
function sumLags(lags: readonly NodeLag[], nowMs: number): DeliveryLag {
  const oldest = lags.flatMap(({ oldest_sealed_at }) => oldest_sealed_at ?? []).toSorted()[0] ?? null
  return {
    undelivered_segments: lags.reduce((sum, { undelivered_segments }) => sum + undelivered_segments, 0),
    undelivered_bytes: lags.reduce((sum, { undelivered_bytes }) => sum + undelivered_bytes, 0),
    oldest_sealed_at: oldest,
    oldest_age_seconds: oldest === null ? null : Math.max(0, nowMs - Date.parse(oldest)) / 1000,
  }
}

/** Drops the lags of nodes that are gone. */
function dropGoneNodes(nodes: readonly NodeFacts[], lags: readonly NodeLag[]): readonly NodeLag[] {
  return lags.filter(({ node_id }) => nodes.some(({ id }) => id === node_id))
}
