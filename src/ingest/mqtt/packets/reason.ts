/**
 * Reasons for which a connection is refused or ended.
 *
 * `code` is the reason code of MQTT 5 (§2.4) in CONNACK and DISCONNECT. `connack` is the return code of MQTT 3.1.1 (§3.2.2.3), which
 * has none for an open connection: it closes without a code.
 */
import type { Outcome, Rejection } from '../../gate/rejection.ts'

export const reasons = {
  malformed_packet: { code: 0x81, connack: undefined },
  protocol_error: { code: 0x82, connack: undefined },
  unsupported_protocol_version: { code: 0x84, connack: 0x01 },
  client_id_not_valid: { code: 0x85, connack: 0x02 },
  bad_credentials: { code: 0x86, connack: 0x04 },
  not_authorized: { code: 0x87, connack: 0x05 },
  server_unavailable: { code: 0x88, connack: 0x03 },
  server_busy: { code: 0x89, connack: 0x03 },
  banned: { code: 0x8a, connack: 0x05 },
  server_shutting_down: { code: 0x8b, connack: 0x03 },
  bad_authentication_method: { code: 0x8c, connack: 0x05 },
  keep_alive_timeout: { code: 0x8d, connack: undefined },
  session_taken_over: { code: 0x8e, connack: undefined },
  topic_name_invalid: { code: 0x90, connack: 0x05 },
  topic_alias_invalid: { code: 0x94, connack: undefined },
  packet_too_large: { code: 0x95, connack: undefined },
  quota_exceeded: { code: 0x97, connack: 0x03 },
  administrative_action: { code: 0x98, connack: 0x03 },
  qos_not_supported: { code: 0x9b, connack: 0x05 },
} as const

export type Reason = keyof typeof reasons

/** Ends the connection. The client sees the message. */
export class MqttError extends Error {
  override readonly name = 'MqttError'
  readonly reason: Reason

  constructor(reason: Reason, message: string) {
    super(message)
    this.reason = reason
  }
}

const reasonOf: Readonly<Record<Outcome, Reason>> = {
  unauthorized: 'bad_credentials',
  forbidden: 'not_authorized',
  account_suspended: 'banned',
  unknown_endpoint: 'not_authorized',
  quota_exceeded: 'quota_exceeded',
  invalid_route: 'not_authorized',
  invalid_idempotency_key: 'quota_exceeded',
  idempotency_key_reused: 'quota_exceeded',
  invalid_ack_level: 'quota_exceeded',
  endpoint_paused: 'server_unavailable',
  unverifiable: 'server_unavailable',
  fenced: 'server_unavailable',
  not_configured: 'server_unavailable',
  record_too_large: 'packet_too_large',
  no_room: 'server_busy',
  not_stored: 'server_busy',
  not_copied: 'server_busy',
  failed: 'server_busy',
}

/** Converts the gate's outcome to the error that MQTT clients get. */
export function toMqttError({ outcome, message, endsConnection }: Rejection): MqttError {
  if (outcome === 'unauthorized') return new MqttError('bad_credentials', 'the password is not a valid API key')
  return new MqttError(endsConnection ? 'quota_exceeded' : reasonOf[outcome], message)
}
