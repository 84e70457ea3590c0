import type { Registry } from 'prom-client'
import { observableMetrics } from '#lib/metrics.ts'
import { sessionLimits } from './limits.ts'
import type { Reason } from './packets/reason.ts'

/** `client`: it sent DISCONNECT. `lost`: the connection went away without one. */
type End = Reason | 'client' | 'lost'

/** An API key sent as user name by mistake must not show up in the metrics. */
const keyPrefix = 'ing_live_'

/** Counts on the hot path: plain numbers, turned into metrics when they are scraped. */
export class MqttCounters {
  receivedBytes = 0
  acceptedBytes = 0
  /** Messages by QoS. */
  readonly messages = [0, 0]
  /** QoS 0 messages that could not be stored, or exceeded a quota. Clients send others again. */
  lost = 0
  wills = 0
  readonly connects = new Map<Reason | 'accepted', number>()
  readonly ends = new Map<End, number>()
  /** User names above the bound are counted together. */
  readonly messagesByUsername = new Map<string, number>()

  accepted(username: string): void {
    count(this.connects, 'accepted')
    const { messagesByUsername } = this
    if (messagesByUsername.has(username) || messagesByUsername.size >= sessionLimits.usernamesMax) return
    if (!username.startsWith(keyPrefix)) messagesByUsername.set(username, 0)
  }

  refused(reason: Reason): void {
    count(this.connects, reason)
  }

  ended(reason: End): void {
    count(this.ends, reason)
  }

  /** Counts messages that became durable. */
  stored(username: string, messages: number, acknowledged: number, payloadBytes: number): void {
    this.acceptedBytes += payloadBytes
    this.messages[0] = (this.messages[0] ?? 0) + messages - acknowledged
    this.messages[1] = (this.messages[1] ?? 0) + acknowledged
    count(this.messagesByUsername, this.messagesByUsername.has(username) ? username : otherUsernames, messages)
  }
}

const otherUsernames = '(other)'

function count<K>(counts: Map<K, number>, key: K, more = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + more)
}

export type MqttMetricsOptions = {
  readonly connections: () => number
  /** Whether to show user names. Readers must be allowed to see all accounts. */
  readonly byUsername: boolean
}

export function registerMqttMetrics(
  registry: Registry,
  counters: MqttCounters,
  { connections, byUsername }: MqttMetricsOptions,
): void {
  const { counter, counters: labelled, gauge } = observableMetrics(registry)
  labelled('inlet_mqtt_connects_total', 'CONNECT packets by outcome', 'outcome', () => counters.connects)
  labelled('inlet_mqtt_ends_total', 'accepted connections by why they ended', 'reason', () => counters.ends)
  labelled('inlet_mqtt_messages_total', 'messages that became durable, by QoS', 'qos', () =>
    counters.messages.map((total, qos) => [String(qos), total] as const),
  )
  if (byUsername) {
    labelled(
      'inlet_mqtt_client_messages_total',
      'messages that became durable, by user name of the client',
      'username',
      () => counters.messagesByUsername,
    )
  }
  counter('inlet_mqtt_received_bytes_total', 'bytes received over MQTT', () => counters.receivedBytes)
  counter('inlet_mqtt_accepted_bytes_total', 'payload bytes of messages that became durable', () => counters.acceptedBytes)
  counter('inlet_mqtt_wills_total', 'wills that were published', () => counters.wills)
  counter('inlet_mqtt_lost_total', 'QoS 0 messages that could not be stored, or exceeded a quota', () => counters.lost)
  gauge('inlet_mqtt_connections', 'connected MQTT clients', connections)
}
