import { z } from 'zod'
import { AutomaticCompaction } from './compaction.ts'
import { DestinationStatus } from './destination.ts'
import { Id } from './id.ts'
import { KeptField, KeptFields } from './kept-fields.ts'
import { KeptHeaders } from './kept-headers.ts'
import { mqttLimits, segmentLimits } from './limits.ts'
import { regionPattern } from './patterns.ts'
import { properName } from './text.ts'
import { Timestamp } from './timestamp.ts'

export const EndpointStatus = z.enum(['deploying', 'active', 'degraded', 'paused', 'draining', 'failed'])
export type EndpointStatus = z.infer<typeof EndpointStatus>

/** The state that the owner of an endpoint requested. The status in the API is computed from it and from reports of nodes. */
export const DesiredState = z.enum(['active', 'paused', 'draining'])
export type DesiredState = z.infer<typeof DesiredState>

export const OutputFormat = z.enum(['segments', 'parquet', 'parquet_views'])
export type OutputFormat = z.infer<typeof OutputFormat>
export const outputFormatsDefault: readonly OutputFormat[] = ['parquet_views', 'parquet']

/** Whether a file of the format has every record, whatever the views decide. */
const hasEveryRecord: Readonly<Record<OutputFormat, boolean>> = { segments: true, parquet: true, parquet_views: false }

/** Whether the formats store every record. If not, delivery adds raw Parquet where a view cannot take its place (decision 2). */
export function keepRecords(formats: readonly OutputFormat[]): boolean {
  return formats.some((format) => hasEveryRecord[format])
}

export const Region = z
  .string()
  .regex(regionPattern, 'must be a region code of three lowercase letters')
  .meta({ examples: ['fra'] })

export const EndpointName = properName(128).meta({
  description: 'unique in the account; null stands for the label, which is random',
  examples: ['checkout events'],
})

const OutputFormats = z
  .array(OutputFormat)
  .min(1, 'must name at least one format')
  .refine((formats) => new Set(formats).size === formats.length, 'must not name a format twice')
  .meta({ uniqueItems: true })

const bounded = ({ min, max }: { min: number; max: number }) => z.int().min(min).max(max)

export const MqttConfig = z.strictObject({
  enabled: z.boolean().default(true),
  max_connections: bounded(mqttLimits.maxConnections).default(mqttLimits.maxConnections.default),
  keepalive_max_s: bounded(mqttLimits.keepaliveMaxSeconds).default(mqttLimits.keepaliveMaxSeconds.default),
  qos_max: bounded(mqttLimits.qosMax).default(mqttLimits.qosMax.default),
})
export type MqttConfig = z.infer<typeof MqttConfig>

const { enabled, max_connections, keepalive_max_s, qos_max } = MqttConfig.shape
/** A JSON merge patch (RFC 7396): fields that are left out keep their values, and null restores a default. */
export const ChangeMqttConfig = z.strictObject({
  enabled: enabled.unwrap().nullable().optional(),
  max_connections: max_connections.unwrap().nullable().optional(),
  keepalive_max_s: keepalive_max_s.unwrap().nullable().optional(),
  qos_max: qos_max.unwrap().nullable().optional(),
})
export type ChangeMqttConfig = z.infer<typeof ChangeMqttConfig>

export function mergeMqttConfig(current: MqttConfig | null, change: ChangeMqttConfig): MqttConfig {
  const kept = Object.entries({ ...current, ...change }).filter(([, value]) => value !== null && value !== undefined)
  return MqttConfig.parse(Object.fromEntries(kept))
}

const { bytesMin, bytesMax, bytesDefault, maxAgeSecondsMin, maxAgeSecondsMax, maxAgeSecondsDefault } = segmentLimits
const segmentBytesRule = `must be from 8 MB to 1 GB, as a number of bytes from ${bytesMin} to ${bytesMax}`
const SegmentBytes = z
  .int(segmentBytesRule)
  .min(bytesMin, segmentBytesRule)
  .max(bytesMax, segmentBytesRule)
  .meta({ description: 'size at which a segment is sealed, in bytes: 8 MB to 1 GB in decimal units', examples: [bytesDefault] })
const SegmentMaxAgeSeconds = z
  .int()
  .min(maxAgeSecondsMin)
  .max(maxAgeSecondsMax)
  .meta({ examples: [maxAgeSecondsDefault] })

/** Where a record is before it is acknowledged: on the disk of a node, and with two copies in the copy store of the node as well. */
const Copies = z
  .int()
  .min(1)
  .max(2)
  .meta({
    description:
      '1: a record is acknowledged once it is on the disk of a node; 2: once it is in the copy store as well (`INLET_COPY_URL`), so that it survives the machine',
    examples: [1],
  })
export const copiesDefault = 1

export const CreateEndpoint = z.strictObject({
  region: Region,
  name: EndpointName.nullable().optional(),
  destination_id: Id.nullable().optional(),
  segment_bytes: SegmentBytes.optional(),
  segment_max_age_seconds: SegmentMaxAgeSeconds.optional(),
  output_formats: OutputFormats.optional(),
  mqtt_config: MqttConfig.nullable().optional(),
  compaction: AutomaticCompaction.nullable().optional(),
  kept_headers: KeptHeaders.optional(),
  kept_fields: KeptFields.optional(),
  copies: Copies.optional(),
})
export type CreateEndpoint = z.infer<typeof CreateEndpoint>

export const ChangeEndpoint = z.strictObject({
  name: EndpointName.nullable().optional(),
  destination_id: Id.nullable().optional(),
  segment_bytes: SegmentBytes.nullable().optional(),
  segment_max_age_seconds: SegmentMaxAgeSeconds.nullable().optional(),
  output_formats: OutputFormats.nullable().optional(),
  mqtt_config: ChangeMqttConfig.nullable().optional(),
  compaction: AutomaticCompaction.nullable().optional(),
  kept_headers: KeptHeaders.nullable().optional(),
  kept_fields: KeptFields.nullable().optional(),
  copies: Copies.nullable().optional(),
})
export type ChangeEndpoint = z.infer<typeof ChangeEndpoint>

/** Data that is not yet in the bucket. */
export const DeliveryLag = z.object({
  open_segments: z.int().min(0).meta({ description: 'segments that are still written to' }),
  undelivered_segments: z.int().min(0).meta({ description: 'sealed segments that are not committed, parked ones included' }),
  parked_segments: z.int().min(0).meta({ description: 'sealed segments that were set aside because they cannot be converted' }),
  quarantined_segments: z.int().min(0).meta({ description: 'damaged files that were kept; their intact records are delivered' }),
  undelivered_bytes: z.int().min(0).meta({ description: 'bytes of all these segments' }),
  oldest_sealed_at: Timestamp.nullable(),
  oldest_age_seconds: z.number().min(0).nullable(),
})
export type DeliveryLag = z.infer<typeof DeliveryLag>

/** Data that a forced deletion abandons on nodes, as they last reported it. */
export const ForcedDeletion = z.object({
  abandoned: z
    .array(
      z.object({
        node_id: Id,
        region: z.string(),
        reported_at: Timestamp.nullable().meta({ description: 'the last report of the node; null if there is none' }),
        open_segments: z.int().min(0),
        sealed_segments: z.int().min(0),
        parked_segments: z.int().min(0),
        quarantined_segments: z.int().min(0),
        bytes: z.int().min(0),
        is_current: z.boolean().meta({
          description:
            'whether the counts are complete: the node reports, and had closed the log when it did. If false, 0 does not mean nothing',
        }),
        note: z.string().nullable().meta({ description: 'why the counts may be wrong; null if `is_current`' }),
      }),
    )
    .meta({ description: 'every node that is not known to hold nothing of the endpoint; the segments stay on its disk' }),
})
export type ForcedDeletion = z.infer<typeof ForcedDeletion>

export const Endpoint = z.object({
  id: Id,
  name: z.string().meta({ description: 'unique in the account; elsewhere this is the `endpoint_name`' }),
  region: z.string(),
  status: EndpointStatus,
  status_reasons: z.array(z.string()).meta({ description: 'reasons for the status; empty while active' }),
  destination_id: Id.nullable(),
  destination_name: z.string().nullable(),
  destination_status: DestinationStatus.nullable(),
  created_at: Timestamp,
  dns_ipv4: z.array(z.string()),
  dns_ipv6: z.array(z.string()),
  lag: DeliveryLag.meta({
    description: 'what nodes hold and is not in the bucket, over all nodes, as last reported',
  }),
  ingest_host: z.string().meta({ description: 'host to send data to, with a port if it is the address of a node' }),
  ingest_url: z.string().meta({
    description: 'URL to send data to with POST; it begins with `https://` if the nodes speak TLS there',
  }),
  segment_bytes: z.int(),
  segment_max_age_seconds: z.int(),
  output_formats: z.array(OutputFormat),
  mqtt_config: MqttConfig.nullable(),
  compaction: AutomaticCompaction.nullable().meta({ description: 'merges small files by itself; null if it does not' }),
  kept_headers: z.array(z.string()).meta({ description: 'HTTP headers that are kept with the records of a request' }),
  kept_fields: z.array(KeptField).meta({ description: 'what is kept of the sender of each record' }),
  copies: Copies,
})
export type Endpoint = z.infer<typeof Endpoint>

/** The response to a change. */
export const ChangedEndpoint = Endpoint.extend({
  warnings: z.array(z.string()).meta({ description: 'what attached views read and is no longer kept; usually empty' }),
})
export type ChangedEndpoint = z.infer<typeof ChangedEndpoint>
