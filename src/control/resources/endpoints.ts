import { must } from '#lib/assert.ts'
import {
  type ChangedEndpoint,
  type ChangeEndpoint,
  type CreateEndpoint,
  type DesiredState,
  type Endpoint,
  type EndpointStatus,
  type ForcedDeletion,
  mergeMqttConfig,
} from '#model/endpoint.ts'
import { newId, newLabel } from '#model/id.ts'
import { factsNotKept } from '#model/kept-fields.ts'
import { type Page, type PageQuery, toPage } from '#model/page.ts'
import { endpointLimit, type Principal } from '#model/principal.ts'
import type { NodeRegions } from '#model/region.ts'
import { getAccount } from '#store/accounts/accounts.ts'
import { withinQuotas } from '#store/accounts/quotas.ts'
import { confirmLossesOf } from '#store/commits/losses.ts'
import { listAttachedViews } from '#store/endpoints/bindings.ts'
import {
  drainEndpoint,
  getEndpoint,
  insertEndpoint,
  listEndpoints,
  listEndpointsById,
  removeDrainingEndpoint,
  type StoredEndpoint,
  setDesiredState,
  updateEndpoint,
} from '#store/endpoints/endpoints.ts'
import { listNodeRegions } from '#store/nodes/nodes.ts'
import type { Db } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import type { DrainHold } from '../status/drain.ts'
import type { EndpointState, EndpointStates, Observation } from '../status/endpoint-states.ts'
import { judgeReport } from '../status/reports.ts'
import { actorOf } from './actor.ts'
import { requireCopyStores } from './copy-stores.ts'
import { effectiveSettings } from './effective-settings.ts'

export type EndpointsOptions = Pick<ControlContext, 'store' | 'applyChange' | 'clock' | 'logger'> & {
  readonly endpointStates: EndpointStates
}

export type EndpointsQuery = PageQuery & { readonly status: EndpointStatus | 'all'; readonly name?: string | undefined }

/** Length of the DNS label of an endpoint: more than 36^11 names per region. */
export const endpointLabelChars = 12

export type Endpoints = ReturnType<typeof endpointService>

export function endpointService(options: EndpointsOptions) {
  const { applyChange, clock, logger, endpointStates, store } = options
  const { toEndpoint, ...queries } = endpointQueries(options)

  async function setState(account_id: string, id: string, state: 'active' | 'paused'): Promise<Endpoint> {
    return toEndpoint(await applyChange((db) => setDesiredState(db, account_id, id, state)))
  }

  return {
    ...queries,

    async create({ account_id }: Principal, { region, ...settings }: CreateEndpoint): Promise<Endpoint> {
      const endpoint = newEndpoint(region, settings)
      const created = await applyChange(async (db, since_epoch) => {
        await requireCopyStores(db, region, settings.copies, clock.now())
        return await withinQuotas(db, account_id, ['endpoints'], () =>
          insertEndpoint(db, account_id, { ...endpoint, since_epoch }, clock.now()),
        )
      })
      return toEndpoint(created)
    },

    async change({ account_id }: Principal, id: string, change: ChangeEndpoint): Promise<ChangedEndpoint> {
      const { mqtt_config: patch, ...settings } = change
      const changed = await applyChange(async (db) => {
        const before = await getEndpoint(db, account_id, id)
        const mqtt_config = patch && mergeMqttConfig(before.mqtt_config, patch)
        if (settings.copies !== before.copies) await requireCopyStores(db, before.region, settings.copies, clock.now())
        return updateEndpoint(db, account_id, id, { ...settings, mqtt_config }, clock.now())
      })
      const changesKept = change.kept_fields !== undefined || change.kept_headers !== undefined
      return { ...(await toEndpoint(changed)), warnings: changesKept ? await listFactsNotKept(store.db, changed) : [] }
    },

    pause({ account_id }: Principal, id: string): Promise<Endpoint> {
      return setState(account_id, id, 'paused')
    },

    resume({ account_id }: Principal, id: string): Promise<Endpoint> {
      return setState(account_id, id, 'active')
    },

    /** Starts to drain the endpoint. `drains.ts` removes it once its nodes have delivered everything. */
    remove({ account_id }: Principal, id: string): Promise<void> {
      return applyChange((db, epoch) => drainEndpoint(db, account_id, id, { epoch, now: clock.now() }))
    },

    /** Removes the endpoint at once. Nodes keep what they hold and report it as unowned. Its open losses are accepted. */
    async removeByForce(principal: Principal, id: string): Promise<ForcedDeletion> {
      const { account_id } = principal
      const endpoint = await getEndpoint(store.db, account_id, id)
      const draining_epoch = endpoint.draining_epoch ?? Number.POSITIVE_INFINITY
      const holds = (await endpointStates.listDrainHolds([{ ...endpoint, draining_epoch }])).get(id) ?? []
      await applyChange(async (db, epoch) => {
        await drainEndpoint(db, account_id, id, { epoch, now: clock.now() })
        await removeDrainingEndpoint(db, id, clock.now())
        await confirmLossesOf(db, id, actorOf(principal), clock.now())
      })
      const abandoned = holds.map((hold) => describeHold(hold, clock.now()))
      logger.warn({ endpoint_id: id, abandoned }, 'endpoint deleted by force')
      return { abandoned }
    },
  }
}

function endpointQueries({ endpointStates, store }: Pick<EndpointsOptions, 'endpointStates' | 'store'>) {
  async function toEndpoint(stored: StoredEndpoint): Promise<Endpoint> {
    const [endpoint] = await toEndpoints([stored])
    return must(endpoint, 'the endpoint')
  }

  async function toEndpoints(endpoints: readonly StoredEndpoint[], observation?: Observation): Promise<Endpoint[]> {
    const states = await endpointStates.computeStates(endpoints, observation)
    return endpoints.map((endpoint) => describeEndpoint(endpoint, must(states.get(endpoint.id), 'the state of the endpoint')))
  }

  return {
    toEndpoint,

    async list(principal: Principal, { status, name, limit, offset }: EndpointsQuery): Promise<Page<Endpoint>> {
      const { account_id } = principal
      const allowed = endpointLimit(principal) ?? undefined
      if (status === 'all' || status === 'paused' || status === 'draining') {
        const desired_states = status === 'all' ? undefined : await desiredStatesOf(store.db, account_id, status)
        const page = await listEndpoints(store.db, account_id, { limit, offset }, { ids: allowed, desired_states, name })
        return { ...page, items: await toEndpoints(page.items) }
      }
      const found = await endpointStates.listIdsWithStatus(account_id, status, name)
      const { observation } = found
      const ids = allowed === undefined ? found.ids : found.ids.filter((id) => allowed.includes(id))
      const endpoints = await listEndpointsById(store.db, account_id, ids.slice(offset, offset + limit))
      return toPage(await toEndpoints(endpoints, observation), ids.length, { limit, offset })
    },

    async listRegions(): Promise<NodeRegions> {
      return { items: (await listNodeRegions(store.db)).map((region) => ({ region })) }
    },

    async get({ account_id }: Principal, id: string): Promise<Endpoint> {
      return toEndpoint(await getEndpoint(store.db, account_id, id))
    },
  }
}

function newEndpoint(region: string, settings: Omit<CreateEndpoint, 'region'>) {
  return {
    id: newId(),
    region,
    label: newLabel(endpointLabelChars),
    name: settings.name ?? null,
    destination_id: settings.destination_id ?? null,
    segment_bytes: settings.segment_bytes ?? null,
    segment_max_age_seconds: settings.segment_max_age_seconds ?? null,
    output_formats: settings.output_formats ?? null,
    mqtt_config: settings.mqtt_config ?? null,
    compaction: settings.compaction ?? null,
    kept_headers: settings.kept_headers ?? null,
    kept_fields: settings.kept_fields ?? null,
    copies: settings.copies ?? null,
  }
}

function describeEndpoint(endpoint: StoredEndpoint, state: EndpointState): Endpoint {
  const { id, name, region, destination_id, destination_name, destination_status, created_at, compaction } = endpoint
  const destination = { destination_id, destination_name, destination_status }
  return { id, name, region, ...state, ...destination, created_at, ...effectiveSettings(endpoint), compaction }
}

/** Returns a warning for each fact that an attached view reads and the endpoint does not keep. */
async function listFactsNotKept(db: Db, endpoint: StoredEndpoint): Promise<string[]> {
  const settings = effectiveSettings(endpoint)
  const views = await listAttachedViews(db, endpoint.id)
  return views.flatMap(({ name, version, definition }) =>
    factsNotKept(`version ${version} of ${JSON.stringify(name)}`, definition, settings),
  )
}

/** Returns the desired states whose endpoints have the status. */
async function desiredStatesOf(db: Db, account_id: string, status: 'paused' | 'draining'): Promise<readonly DesiredState[]> {
  if (status === 'draining') return ['draining']
  const account = await getAccount(db, account_id)
  return account.status === 'suspended' ? ['active', 'paused'] : ['paused']
}

function describeHold({ node, lag }: DrainHold, now: number): ForcedDeletion['abandoned'][number] {
  return {
    node_id: node.id,
    region: node.region,
    reported_at: node.delivery?.last_seen_at ?? null,
    open_segments: lag?.open_segments ?? 0,
    sealed_segments: lag?.undelivered_segments ?? 0,
    parked_segments: lag?.parked_segments ?? 0,
    quarantined_segments: lag?.quarantined_segments ?? 0,
    bytes: lag?.undelivered_bytes ?? 0,
    ...judgeReport(node, lag, now),
  }
}
