/** Handles packets of an open session other than PUBLISH and PINGREQ. */
import type { Buffer } from 'node:buffer'
import { mqttLimits } from '#model/limits.ts'
import { encodeNotSubscribed, encodeNotUnsubscribed, readControlPacket } from './packets/control-packet.ts'
import { MqttError } from './packets/reason.ts'
import type { SessionTerms } from './session-terms.ts'

export type ControlPacketResult =
  | { readonly kind: 'reply'; readonly bytes: Buffer | undefined }
  | { readonly kind: 'disconnect'; readonly keepsWill: boolean }

/** Throws MqttError. */
export function handleControlPacket(bytes: Buffer, { peer, sessionExpiryInterval }: SessionTerms): ControlPacketResult {
  if (bytes.length > mqttLimits.controlBytesMax) {
    throw new MqttError('packet_too_large', `a packet other than PUBLISH is longer than ${mqttLimits.controlBytesMax} bytes`)
  }
  const packet = readControlPacket(bytes, peer.version)
  switch (packet.cmd) {
    case 'subscribe':
      if (packet.subscriptions.length === 0) throw new MqttError('protocol_error', 'SUBSCRIBE without a topic filter') // [MQTT-3.8.3-2]
      return { kind: 'reply', bytes: encodeNotSubscribed(peer, idOf(packet), packet.subscriptions.length) }
    case 'unsubscribe':
      if (packet.unsubscriptions.length === 0) throw new MqttError('protocol_error', 'UNSUBSCRIBE without a topic filter') // [MQTT-3.10.3-2]
      return { kind: 'reply', bytes: encodeNotUnsubscribed(peer, idOf(packet), packet.unsubscriptions.length) }
    case 'disconnect':
      if (sessionExpiryInterval === undefined && (packet.properties?.sessionExpiryInterval ?? 0) > 0) {
        throw new MqttError('protocol_error', 'DISCONNECT sets a session expiry, but CONNECT did not') // §3.14.2.2.2
      }
      // [MQTT-3.14.4-3]: any other reason leaves the will in force.
      return { kind: 'disconnect', keepsWill: (packet.reasonCode ?? 0) !== 0 }
    default:
      // [MQTT-3.1.0-2] for CONNECT. The others acknowledge packets that this server never sends.
      throw new MqttError('protocol_error', `${packet.cmd.toUpperCase()} is not allowed here`)
  }
}

function idOf({ messageId }: { readonly messageId?: number }): number {
  if (messageId === undefined || messageId === 0) throw new MqttError('malformed_packet', 'a packet identifier is 0') // [MQTT-2.2.1-3]
  return messageId
}
