/**
 * Reads CONNECT and creates the CONNACK.
 *
 * Owns: reading CONNECT, and which CONNACK is sent. Does not own: the decision (session-terms.ts), the connection.
 */
import type { Buffer } from 'node:buffer'
import { mqttLimits, recordLimits } from '#model/limits.ts'
import type { Admitted } from '../gate/admitted.ts'
import {
  encodeAccepted,
  encodeRefused,
  type IConnectPacket,
  peekPeer,
  peerOf,
  readControlPacket,
} from './packets/control-packet.ts'
import { MqttError } from './packets/reason.ts'
import { agreeTerms, type ConnectContext, type Connecting, type SessionTerms } from './session-terms.ts'

/** Size of a packet that carries the largest record. */
export const packetBytesMax = recordLimits.bytesMax + mqttLimits.topicBytesMax + mqttLimits.propertiesBytesMax + 16

export type ConnectResult =
  | { readonly terms: SessionTerms; readonly admitted: Admitted; readonly connack: Buffer }
  | {
      readonly terms: undefined
      /** Undefined if the protocol version has none for this case, or the client accepts no packet that long. */
      readonly connack: Buffer | undefined
      readonly error: MqttError
      readonly clientId: string | undefined
      readonly username: string | undefined
    }

/** Decides about the CONNECT in `bytes`, the first packet of the connection. */
export function handleConnect(bytes: Buffer, connecting: Connecting, context: ConnectContext): ConnectResult {
  let peer = peekPeer(bytes)
  let packet: IConnectPacket | undefined
  try {
    packet = readConnect(bytes)
    peer = peerOf(packet)
    const { terms, admitted } = agreeTerms(packet, connecting, context)
    const connack = encodeAccepted(peer, {
      maximumQoS: terms.qosMax,
      receiveMaximum: mqttLimits.inFlightMessagesMax,
      maximumPacketSize: packetBytesMax,
      topicAliasMaximum: mqttLimits.topicAliasMax,
      sessionExpiryInterval: terms.sessionExpiryInterval,
      assignedClientIdentifier: terms.assignedClientId,
      serverKeepAlive: terms.serverKeepAlive,
    })
    if (connack === undefined) throw new MqttError('packet_too_large', 'the maximum packet size has no room for a CONNACK')
    return { terms, admitted, connack }
  } catch (error) {
    if (!(error instanceof MqttError)) throw error
    const connack = encodeRefused(peer, error.reason, error.message)
    return { terms: undefined, connack, error, clientId: packet?.clientId, username: packet?.username }
  }
}

function readConnect(bytes: Buffer): IConnectPacket {
  const packet = readControlPacket(bytes, undefined)
  if (packet.cmd !== 'connect') throw new MqttError('protocol_error', 'the first packet is not a CONNECT')
  return packet
}
