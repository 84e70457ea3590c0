/**
 * What an endpoint is provisioned with, and how it does.
 *
 * Owns: placement (on every node of the endpoint's region), the addresses to send to, the status. Does not own: nodes, resources.
 * DNS by a server and certificates join here as further facts; until then DNS is static: the addresses of the serving nodes.
 */
import type { Clock } from '#lib/clock.ts'
import type { Endpoint } from '#model/endpoint.ts'
import type { StoredEndpoint } from '#store/endpoints.ts'
import { listLags, listNodes, type NodeFacts, type NodeLag } from '#store/nodes.ts'
import type { Store } from '#store/store.ts'
import { type HostOptions, ingestHost } from './ingest-host.ts'
import { computeStatus, presentNodes, servingNodes } from './status.ts'

export type EndpointState = Pick<Endpoint, 'status' | 'status_reasons' | 'dns_ipv4' | 'dns_ipv6' | 'ingest_host'>

export type ProvisionerOptions = { readonly store: Store; readonly clock: Clock; readonly hosts: HostOptions }

export class Provisioner {
  readonly #options: ProvisionerOptions

  constructor(options: ProvisionerOptions) {
    this.#options = options
  }

  /** By endpoint id, for each of them. */
  async statesOf(endpoints: readonly StoredEndpoint[]): Promise<ReadonlyMap<string, EndpointState>> {
    const { store, clock } = this.#options
    const nowMs = clock.now()
    const nodesByRegion = new Map<string, readonly NodeFacts[]>()
    for (const region of new Set(endpoints.map((endpoint) => endpoint.region))) {
      nodesByRegion.set(region, presentNodes(await listNodes(store.db, region), nowMs))
    }
    const lags = Map.groupBy(
      await listLags(
        store.db,
        endpoints.map(({ id }) => id),
      ),
      ({ endpoint_id }) => endpoint_id,
    )
    return new Map(
      endpoints.map((endpoint) => [
        endpoint.id,
        this.#stateOf(endpoint, nodesByRegion.get(endpoint.region) ?? [], lags.get(endpoint.id) ?? [], nowMs),
      ]),
    )
  }

  #stateOf(endpoint: StoredEndpoint, nodes: readonly NodeFacts[], lags: readonly NodeLag[], nowMs: number): EndpointState {
    const presentLags = lags.filter(({ node_id }) => nodes.some(({ id }) => id === node_id))
    const { status, reasons } = computeStatus(endpoint, nodes, presentLags, nowMs)
    const serving = servingNodes(endpoint, nodes, nowMs)
    return {
      status,
      status_reasons: [...reasons],
      dns_ipv4: serving.flatMap(({ ipv4 }) => ipv4),
      dns_ipv6: serving.flatMap(({ ipv6 }) => ipv6),
      ingest_host: ingestHost(endpoint, serving.length > 0 ? serving : nodes, this.#options.hosts),
    }
  }
}
