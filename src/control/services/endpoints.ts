import { must } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import type { Principal } from '#model/api-key.ts'
import type { ChangeEndpoint, CreateEndpoint, Endpoint, EndpointStatus } from '#model/endpoint.ts'
import { newId, newLabel } from '#model/id.ts'
import { type Page, type PageQuery, toPage } from '#model/page.ts'
import {
  getEndpoint,
  insertEndpoint,
  listAllEndpoints,
  listEndpoints,
  type StoredEndpoint,
  updateEndpoint,
} from '#store/endpoints.ts'
import type { Store } from '#store/store.ts'
import type { Provisioner } from '../provisioning/provisioner.ts'
import type { Changes } from './changes.ts'
import { effectiveSettings } from './effective-settings.ts'

export type EndpointsOptions = {
  readonly store: Store
  readonly changes: Changes
  readonly provisioner: Provisioner
  readonly clock: Clock
}

export type EndpointsQuery = PageQuery & { readonly status: EndpointStatus | 'all' }

/** Of the DNS label of an endpoint: 36^11 names in a region. */
export const endpointLabelChars = 12

export class Endpoints {
  readonly #options: EndpointsOptions

  constructor(options: EndpointsOptions) {
    this.#options = options
  }

  async create({ account_id }: Principal, { region, ...settings }: CreateEndpoint): Promise<Endpoint> {
    const { changes, clock } = this.#options
    const endpoint = {
      id: newId(),
      region,
      label: newLabel(endpointLabelChars),
      destination_id: settings.destination_id ?? null,
      segment_bytes: settings.segment_bytes ?? null,
      segment_max_age_seconds: settings.segment_max_age_seconds ?? null,
      output_formats: settings.output_formats ?? null,
      mqtt_config: settings.mqtt_config ?? null,
    }
    const created = await changes.run((db, since_epoch) =>
      insertEndpoint(db, account_id, { ...endpoint, since_epoch }, clock.now()),
    )
    return this.#show(created)
  }

  async list({ account_id }: Principal, { status, limit, offset }: EndpointsQuery): Promise<Page<Endpoint>> {
    const { db } = this.#options.store
    if (status === 'all') {
      const page = await listEndpoints(db, account_id, { limit, offset })
      return { ...page, items: await this.#showAll(page.items) }
    }
    // The status is computed, so the filter runs over all of the account's endpoints.
    const matching = (await this.#showAll(await listAllEndpoints(db, account_id))).filter(
      (endpoint) => endpoint.status === status,
    )
    return toPage(matching.slice(offset, offset + limit), matching.length, { limit, offset })
  }

  async get({ account_id }: Principal, id: string): Promise<Endpoint> {
    return this.#show(await getEndpoint(this.#options.store.db, account_id, id))
  }

  async change({ account_id }: Principal, id: string, change: ChangeEndpoint): Promise<Endpoint> {
    return this.#show(await this.#options.changes.run((db) => updateEndpoint(db, account_id, id, change)))
  }

  async #show(endpoint: StoredEndpoint): Promise<Endpoint> {
    const [shown] = await this.#showAll([endpoint])
    return must(shown, 'the endpoint')
  }

  async #showAll(endpoints: readonly StoredEndpoint[]): Promise<Endpoint[]> {
    const states = await this.#options.provisioner.statesOf(endpoints)
    return endpoints.map((endpoint) => {
      const { id, region, destination_id, destination_name, destination_status, created_at } = endpoint
      const state = must(states.get(id), 'the state of the endpoint')
      return {
        id,
        region,
        ...state,
        destination_id,
        destination_name,
        destination_status,
        created_at,
        ...effectiveSettings(endpoint),
      }
    })
  }
}
