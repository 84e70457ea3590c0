/**
 * Reads CONNECT and creates the CONNACK.
 *
 * Owns: reading CONNECT, and which CONNACK is sent. Does not own: the decision (session-terms.ts), the connection.
 */
import type { Buffer } from 'node:buffer'
import { mqttLimits, recordLimits } from '#model/limits.ts'
import type { ConnectionSlot } from '../gate/connection-budget.ts'
import type { Route } from '../gate/endpoint-table.ts'
import {
  encodeAccepted,
  encodeRefused,
  type IConnectPacket,
  peekPeer,
  peerOf,
  readControlPacket,
} from './packets/control-packet.ts'
import { MqttError } from './packets/reason.ts'
import { agreeTerms, type ConnectContext, type SessionTerms } from './session-terms.ts'

/** Size of a packet that carries the largest record. */
export const packetBytesMax = recordLimits.bytesMax + mqttLimits.topicBytesMax + mqttLimits.propertiesBytesMax + 16

export type ConnectResult =
  | { readonly terms: SessionTerms; readonly connack: Buffer }
  | {
      readonly terms: undefined
      /** Undefined if the protocol version has none for this case, or the client accepts no packet that long. */
      readonly connack: Buffer | undefined
      readonly error: MqttError
      readonly clientId: string | undefined
      readonly username: string | undefined
    }

/** Decides about the CONNECT in `bytes`, the first packet of the connection. */
export function handleConnect(
  bytes: Buffer,
  { route, slot, context }: { readonly route: Route; readonly slot: ConnectionSlot; readonly context: ConnectContext },
): ConnectResult {
  let peer = peekPeer(bytes)
  let packet: IConnectPacket | undefined
  try {
    packet = readConnect(bytes)
    peer = peerOf(packet)
    const terms = agreeTerms(packet, route, context)
    const connack = encodeAccepted(peer, {
      maximumQoS: terms.qosMax,
      receiveMaximum: mqttLimits.inFlightMessagesMax,
      maximumPacketSize: packetBytesMax,
      topicAliasMaximum: mqttLimits.topicAliasMax,
      sessionExpiryInterval: terms.sessionExpiryInterval,
      assignedClientIdentifier: terms.assignedClientId,
      serverKeepAlive: terms.serverKeepAlive,
    })
    claimConnection(slot, terms, context)
    if (connack === undefined) throw new MqttError('packet_too_large', 'the maximum packet size has no room for a CONNACK')
    return { terms, connack }
  } catch (error) {
    if (!(error instanceof MqttError)) throw error
    const connack = encodeRefused(peer, error.reason, error.message)
    return { terms: undefined, connack, error, clientId: packet?.clientId, username: packet?.username }
  }
}

/** Counts the connection for the account. A client can always take over its own connection. */
function claimConnection(slot: ConnectionSlot, { accountId, endpointId, clientId }: SessionTerms, context: ConnectContext): void {
  if (context.isConnected(endpointId, clientId)) slot.force(accountId)
  else {
    const refusal = slot.claim(accountId)
    if (refusal !== undefined) throw new MqttError('quota_exceeded', refusal.message)
  }
}

function readConnect(bytes: Buffer): IConnectPacket {
  const packet = readControlPacket(bytes, undefined)
  if (packet.cmd !== 'connect') throw new MqttError('protocol_error', 'the first packet is not a CONNECT')
  return packet
}
