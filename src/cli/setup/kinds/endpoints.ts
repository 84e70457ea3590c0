import { copiesDefault, MqttConfig, outputFormatsDefault } from '#model/endpoint.ts'
import { segmentLimits } from '#model/limits.ts'
import type { DeclaredEndpoint } from '#model/setup.ts'
import type { Account, Endpoint } from './account.ts'
import { type Applying, assertUnchanged, type Change } from './change.ts'
import type { Declared, DeclaredSetup } from './declared.ts'
import { areSame, changesOf, type Settings, withoutDefaults } from './fields.ts'
import { missing, type Problems } from './problems.ts'

/** A field that a file leaves out has its default. */
const defaults = {
  destination: null,
  segment_bytes: segmentLimits.bytesDefault,
  segment_max_age_seconds: segmentLimits.maxAgeSecondsDefault,
  output_formats: outputFormatsDefault.toSorted(),
  mqtt_config: null,
  compaction: null,
  kept_headers: [],
  kept_fields: [],
  copies: copiesDefault,
}

/** `region` is not a setting, because it never changes. */
type EndpointSettings = Omit<DeclaredEndpoint, 'name' | 'region'>

function settingsOf(endpoint: EndpointSettings): Settings {
  const {
    destination,
    segment_bytes,
    segment_max_age_seconds,
    output_formats,
    mqtt_config,
    compaction,
    kept_headers,
    kept_fields,
    copies,
  } = endpoint
  return {
    destination,
    segment_bytes: segment_bytes ?? defaults.segment_bytes,
    segment_max_age_seconds: segment_max_age_seconds ?? defaults.segment_max_age_seconds,
    output_formats: output_formats?.toSorted() ?? defaults.output_formats,
    mqtt_config: mqtt_config ?? null,
    compaction: compaction ? { ...compaction, except_views: compaction.except_views.toSorted() } : null,
    kept_headers: kept_headers?.toSorted() ?? defaults.kept_headers,
    kept_fields: kept_fields?.toSorted() ?? defaults.kept_fields,
    copies: copies ?? defaults.copies,
  } satisfies Record<keyof EndpointSettings, unknown>
}

const currentOf = ({ destination_name, ...endpoint }: Endpoint) => settingsOf({ ...endpoint, destination: destination_name })

export function planEndpoints(setup: DeclaredSetup, account: Account, problems: Problems): readonly Change[] {
  return setup.endpoints.flatMap((declared) => {
    const { name, destination } = declared.value
    const before = problems.count
    if (destination !== null && !setup.names.destinations.has(destination) && !account.destinations.has(destination))
      declared.source.report(
        problems,
        'destination',
        missing('destination', destination, [...setup.names.destinations, ...account.destinations.keys()]),
      )
    const current = account.endpoints.get(name)
    if (current === undefined && account.draining.has(name))
      declared.source.report(
        problems,
        'name',
        'is the name of an endpoint that is being deleted: wait until its data is delivered, or use another name',
      )
    if (current !== undefined && current.region !== declared.value.region)
      declared.source.report(
        problems,
        'region',
        `cannot be changed: it is ${current.region}. Declare another endpoint with another name`,
      )
    if (problems.count > before) return []
    return current === undefined ? [creationOf(declared)] : changeOf(current, settingsOf(declared.value))
  })
}

function creationOf({ value: { name, region, ...declared } }: Declared<DeclaredEndpoint>): Change {
  const chosen = withoutDefaults(settingsOf(declared), defaults)
  return {
    ...{ action: 'create', kind: 'endpoints', name, notes: [] },
    fields: changesOf({}, { region, ...chosen }),
    run: async (applying) => {
      const { id } = await applying.client.createEndpoint({ name, region, ...bodyOf(chosen, applying) })
      applying.ids.set('endpoints', name, id)
    },
  }
}

function changeOf(current: Endpoint, settings: Settings): readonly Change[] {
  const before = currentOf(current)
  const fields = changesOf(before, settings)
  if (fields.length === 0) return []
  const { id, name } = current
  // A default is restored as such, and not written down as a value.
  const chosen = Object.entries(settings)
    .filter(([field, value]) => !areSame(value, before[field]))
    .map(([field, value]) => [field, areSame(value, defaults[field as keyof typeof defaults]) ? null : value])
  const change: Change = {
    ...{ action: 'change', kind: 'endpoints', name, fields, notes: [] },
    run: async (applying) => {
      assertUnchanged(currentOf(await applying.client.getEndpoint(id)), before)
      const { warnings } = await applying.client.changeEndpoint(id, bodyOf(Object.fromEntries(chosen), applying))
      for (const warning of warnings) applying.warn(warning)
    },
  }
  return [change]
}

/** The API has the id of the destination. */
function bodyOf({ destination, ...settings }: Settings, { ids }: Applying): Settings {
  if (destination === undefined) return settings
  return { ...settings, destination_id: destination === null ? null : ids.get('destinations', String(destination)) }
}

export function removalOfEndpoint({ id, name }: Endpoint): Change {
  return {
    ...{ action: 'delete', kind: 'endpoints', name, fields: [] },
    notes: ['refuses data at once, and is removed once what it has is delivered; what is in the bucket stays'],
    run: async ({ client }) => {
      await client.deleteEndpoint(id)
    },
  }
}

export function exportEndpoint(endpoint: Endpoint): Settings {
  const { name, region, mqtt_config } = endpoint
  const settings = withoutDefaults(currentOf(endpoint), defaults)
  if (mqtt_config === null) return { name, region, ...settings }
  const { enabled, ...limits } = mqtt_config
  return { name, region, ...settings, mqtt_config: { enabled, ...withoutDefaults(limits, mqttDefaults) } }
}

const mqttDefaults = MqttConfig.parse({})
