/**
 * Every packet except PUBLISH, read and written by mqtt-packet.
 *
 * Law: the parser gets one complete packet. This file catches its errors and adds checks where it is lenient.
 */
import { Buffer } from 'node:buffer'
import {
  generate,
  type IConnackPacket,
  type IConnectPacket,
  type IDisconnectPacket,
  type ISubackPacket,
  type Packet,
  parser,
  writeToStream,
} from 'mqtt-packet'
import type { ProtocolVersion } from './publish.ts'
import { MqttError, type Reason, reasons } from './reason.ts'

// By default mqtt-packet keeps a Buffer for each number up to 65 535, which takes 14 MB and serves only packets that are written here.
writeToStream.cacheNumbers = false

/** First bytes: type and flags. */
const [PINGREQ, DISCONNECT, AUTH] = [0xc0, 0xe0, 0xf0]

/** Throws MqttError. `version` is undefined for the first packet of a connection. */
export function readControlPacket(bytes: Buffer, version: ProtocolVersion | undefined): Packet {
  const [header = 0] = bytes
  if (version === 5 && header === AUTH)
    throw new MqttError('protocol_error', 'AUTH is not supported; send the API key as the password in CONNECT')
  const isEmpty = header === PINGREQ || (version === 4 && header === DISCONNECT)
  if (isEmpty && bytes.length > 2) throw new MqttError('malformed_packet', 'the packet must be empty')
  // A parser remembers the version of the last CONNECT, so each packet gets a new parser. These packets are few.
  const reader = parser({ protocolVersion: version })
  let packet: Packet | undefined
  let failure: Error | undefined
  reader.on('packet', (read) => {
    packet = read
  })
  reader.on('error', (error: Error) => {
    failure ??= error
  })
  let unread: number
  try {
    unread = reader.parse(bytes)
  } catch (cause) {
    throw new MqttError('malformed_packet', `a packet ends inside a field: ${String(cause)}`)
  }
  if (failure !== undefined) {
    if (failure.message === 'Invalid protocol version' || failure.message === 'Invalid protocolId') {
      throw new MqttError('unsupported_protocol_version', 'this server supports MQTT 3.1.1 and 5') // [MQTT-3.1.2-2]
    }
    throw new MqttError('malformed_packet', failure.message)
  }
  if (packet === undefined || unread > 0)
    throw new MqttError('malformed_packet', 'the length of a packet does not match its content')
  if ('properties' in packet) checkProperties(packet.properties, properties[packet.cmd])
  if (packet.cmd === 'connect') checkProperties(packet.will?.properties, properties.will)
  return packet
}

/** Properties that a client may set in each packet, §2.2.2.2. */
const properties: { readonly [packet in Packet['cmd'] | 'will']?: readonly string[] } = {
  connect: [
    'sessionExpiryInterval',
    'receiveMaximum',
    'maximumPacketSize',
    'topicAliasMaximum',
    'requestResponseInformation',
    'requestProblemInformation',
    'authenticationMethod',
    'authenticationData',
    'userProperties',
  ],
  will: [
    'willDelayInterval',
    'payloadFormatIndicator',
    'messageExpiryInterval',
    'contentType',
    'responseTopic',
    'correlationData',
    'userProperties',
  ],
  subscribe: ['subscriptionIdentifier', 'userProperties'],
  unsubscribe: ['userProperties'],
  disconnect: ['sessionExpiryInterval', 'reasonString', 'userProperties'],
}

function checkProperties(found: object | undefined, known: readonly string[] = []): void {
  for (const [name, value] of Object.entries(found ?? {})) {
    if (!known.includes(name)) throw new MqttError('malformed_packet', `the property ${name} is not allowed in this packet`)
    if (Array.isArray(value)) throw new MqttError('protocol_error', `the property ${name} appears twice`)
    for (const text of name === 'userProperties' ? Object.entries(value).flat(2) : [value]) {
      // mqtt-packet returns these if the packet ends inside the value.
      if (text === null || text === undefined || text === -1)
        throw new MqttError('malformed_packet', `the property ${name} is incomplete`)
      if (typeof text === 'string') checkText(`property ${name}`, text)
    }
  }
}

/** [MQTT-1.5.4-1], [MQTT-1.5.4-2]. mqtt-packet replaces invalid UTF-8 by U+FFFD, which no client sends on purpose. */
export function checkText(name: string, text: string): string {
  if (text.includes('\uFFFD') || text.includes('\0')) throw new MqttError('malformed_packet', `the ${name} is not UTF-8`)
  return text
}

/** Determines how packets to a client are encoded. */
export type Peer = {
  readonly version: ProtocolVersion
  /** Larger packets must not be sent [MQTT-3.1.2-24]. */
  readonly packetBytesMax: number
  /** Whether packets other than CONNACK and DISCONNECT may have a reason string [MQTT-3.1.2-29]. */
  readonly wantsReasons: boolean
}

/** Reads the version from a CONNECT that may be malformed. For an unsupported version, returns the nearest supported one. */
export function peekPeer(bytes: Buffer): Peer {
  // The protocol name follows the fixed header of two to five bytes, with its length in front.
  const name = bytes.subarray(0, 12).indexOf('MQTT')
  const level = name === -1 ? 0 : (bytes[name + 4] ?? 0) & 0x7f
  return { version: level >= 5 ? 5 : 4, packetBytesMax: Number.POSITIVE_INFINITY, wantsReasons: true }
}

export function peerOf({ protocolVersion, properties }: IConnectPacket): Peer {
  return {
    version: protocolVersion === 5 ? 5 : 4,
    // 0 is refused with a CONNACK, which must fit.
    packetBytesMax: properties?.maximumPacketSize || Number.POSITIVE_INFINITY,
    wantsReasons: properties?.requestProblemInformation !== false,
  }
}

/** Encodes a CONNACK that accepts. Returns undefined if the client accepts no packet that long. */
export function encodeAccepted(
  peer: Peer,
  properties: {
    readonly maximumQoS: 0 | 1
    readonly receiveMaximum: number
    readonly maximumPacketSize: number
    readonly topicAliasMaximum: number
    readonly sessionExpiryInterval: number | undefined
    readonly assignedClientIdentifier: string | undefined
    readonly serverKeepAlive: number | undefined
  },
): Buffer | undefined {
  if (peer.version === 4) return generate({ cmd: 'connack', sessionPresent: false, returnCode: 0 })
  const { maximumQoS, sessionExpiryInterval, assignedClientIdentifier, serverKeepAlive, ...always } = properties
  return encode(peer, {
    cmd: 'connack',
    sessionPresent: false,
    reasonCode: 0,
    properties: {
      ...always,
      maximumQoS,
      wildcardSubscriptionAvailable: false,
      subscriptionIdentifiersAvailable: false,
      sharedSubscriptionAvailable: false,
      ...(sessionExpiryInterval === undefined ? {} : { sessionExpiryInterval }),
      ...(assignedClientIdentifier === undefined ? {} : { assignedClientIdentifier }),
      ...(serverKeepAlive === undefined ? {} : { serverKeepAlive }),
    },
  })
}

/** Encodes a CONNACK that refuses. Returns undefined if the connection must close without one. */
export function encodeRefused(peer: Peer, reason: Reason, reasonString: string): Buffer | undefined {
  const { code, connack } = reasons[reason]
  if (peer.version === 4) {
    return connack === undefined ? undefined : generate({ cmd: 'connack', sessionPresent: false, returnCode: connack })
  }
  return encodeWithReason(peer, { cmd: 'connack', sessionPresent: false, reasonCode: code }, reasonString)
}

/** Encodes a DISCONNECT of the server. Returns undefined for MQTT 3.1.1, which has none. */
export function encodeDisconnect(peer: Peer, reason: Reason, reasonString: string): Buffer | undefined {
  if (peer.version === 4) return undefined
  return encodeWithReason(peer, { cmd: 'disconnect', reasonCode: reasons[reason].code }, reasonString)
}

/** Encodes a SUBACK in which every subscription fails, because no message is ever delivered to a client. */
export function encodeNotSubscribed(peer: Peer, messageId: number, subscriptions: number): Buffer | undefined {
  // 0x83 is "implementation specific error"; MQTT 3.1.1 has one code for all failures.
  const granted = Array<number>(subscriptions).fill(peer.version === 4 ? 0x80 : 0x83)
  const reason = 'this service only ingests messages; it delivers none to clients'
  return encodeWithReason(peer, { cmd: 'suback', messageId, granted }, peer.wantsReasons ? reason : undefined)
}

export function encodeNotUnsubscribed(peer: Peer, messageId: number, subscriptions: number): Buffer | undefined {
  // No subscription existed.
  const granted = peer.version === 4 ? [] : Array<number>(subscriptions).fill(0x11)
  return encode(peer, { cmd: 'unsuback', messageId, granted })
}

/** The reason string is left out if the packet would be too long with it [MQTT-3.2.2-19], [MQTT-3.14.2-3], [MQTT-3.9.2-1]. */
function encodeWithReason(
  peer: Peer,
  packet: IConnackPacket | IDisconnectPacket | ISubackPacket,
  reasonString: string | undefined,
): Buffer | undefined {
  const withReason = reasonString === undefined ? undefined : encode(peer, { ...packet, properties: { reasonString } })
  return withReason ?? encode(peer, packet)
}

function encode(peer: Peer, packet: Packet): Buffer | undefined {
  const bytes = generate(packet, { protocolVersion: peer.version })
  return bytes.length > peer.packetBytesMax ? undefined : bytes // [MQTT-3.1.2-25]
}

export const pingResponse: Buffer = generate({ cmd: 'pingresp' })

/** Size of a PUBACK for success, in both versions: MQTT 5 leaves the reason code out (§3.4.2.1). */
const PUBACK_BYTES = 4

/** Encodes a PUBACK for success for each of the messages. */
export function encodePubacks(messageIds: readonly number[]): Buffer {
  const pubacks = Buffer.allocUnsafe(messageIds.length * PUBACK_BYTES)
  for (let index = 0; index < messageIds.length; index += 1) writePuback(pubacks, index * PUBACK_BYTES, messageIds[index] ?? 0)
  return pubacks
}

function writePuback(into: Buffer, at: number, messageId: number): void {
  into[at] = 0x40
  into[at + 1] = 2
  into[at + 2] = messageId >> 8
  into[at + 3] = messageId & 0xff
}

/** Encodes a PUBACK of MQTT 5 for success, with the properties if the client accepts a packet that long. */
export function encodePubackWith(peer: Peer, messageId: number, userProperties: Readonly<Record<string, string>>): Buffer {
  const packet = { cmd: 'puback', messageId, reasonCode: 0, properties: { userProperties: { ...userProperties } } } as const
  return (peer.wantsReasons ? encode(peer, packet) : undefined) ?? encodePubacks([messageId])
}

/** The PUBACK of MQTT 5 for a message that is not stored, and that the client must not send again. */
export function encodeRefusingPuback(messageId: number, reasonCode: number): Buffer {
  return Buffer.from([0x40, 3, messageId >> 8, messageId & 0xff, reasonCode])
}

export type { IConnectPacket }
