/**
 * Every packet but PUBLISH, by mqtt-packet.
 *
 * Law: the parser gets one whole packet, and nothing that it throws or forgives gets past this file.
 */
import type { Buffer } from 'node:buffer'
import {
  generate,
  type IConnackPacket,
  type IConnectPacket,
  type IDisconnectPacket,
  type ISubackPacket,
  type Packet,
  parser,
} from 'mqtt-packet'
import type { ProtocolVersion } from './publish.ts'
import { type Reason, Refusal, reasons } from './reason.ts'

/** First bytes: type and flags. */
const [PINGREQ, DISCONNECT, AUTH] = [0xc0, 0xe0, 0xf0]

/** Throws Refusal. `version` is undefined for the packet that opens the connection. */
export function readControlPacket(bytes: Buffer, version: ProtocolVersion | undefined): Packet {
  const [header = 0] = bytes
  if (version === 5 && header === AUTH)
    throw new Refusal('protocol_error', 'AUTH has no place here: there is nothing to exchange')
  const isEmpty = header === PINGREQ || (version === 4 && header === DISCONNECT)
  if (isEmpty && bytes.length > 2) throw new Refusal('malformed_packet', 'a packet that has nothing in it has something')
  // It remembers the version of the last CONNECT that it read, so each packet gets a new one. There are few of these packets.
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
    throw new Refusal('malformed_packet', `a packet ends inside a field: ${String(cause)}`)
  }
  if (failure !== undefined) {
    if (failure.message === 'Invalid protocol version' || failure.message === 'Invalid protocolId') {
      throw new Refusal('unsupported_protocol_version', 'this is a server of MQTT 3.1.1 and 5') // [MQTT-3.1.2-2]
    }
    throw new Refusal('malformed_packet', failure.message)
  }
  if (packet === undefined || unread > 0) throw new Refusal('malformed_packet', 'a packet has not the length that it says')
  if ('properties' in packet) checkProperties(packet.properties, properties[packet.cmd])
  if (packet.cmd === 'connect') checkProperties(packet.will?.properties, properties.will)
  return packet
}

/** Properties that a packet of a client may have, §2.2.2.2. */
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
    if (!known.includes(name)) throw new Refusal('malformed_packet', `the property ${name} has no place in this packet`)
    if (Array.isArray(value)) throw new Refusal('protocol_error', `the property ${name} is there twice`)
    for (const text of name === 'userProperties' ? Object.entries(value).flat(2) : [value]) {
      // mqtt-packet's words for a value that the packet is too short for.
      if (text === null || text === undefined || text === -1)
        throw new Refusal('malformed_packet', `the property ${name} is cut short`)
      if (typeof text === 'string') checkText(`property ${name}`, text)
    }
  }
}

/** [MQTT-1.5.4-1], [MQTT-1.5.4-2]. mqtt-packet puts U+FFFD for what is not UTF-8; nobody means that character. */
export function checkText(name: string, text: string): string {
  if (text.includes('\uFFFD') || text.includes('\0')) throw new Refusal('malformed_packet', `the ${name} is not UTF-8`)
  return text
}

/** How the answers to a client are written. */
export type Peer = {
  readonly version: ProtocolVersion
  /** Larger packets must not be sent [MQTT-3.1.2-24]. */
  readonly packetBytesMax: number
  /** Whether answers to single packets may say why [MQTT-3.1.2-29]. */
  readonly wantsReasons: boolean
}

/** As far as a CONNECT can be read that may be malformed. Another version is told so in the nearest one that we know. */
export function peerSaid(bytes: Buffer): Peer {
  // The fixed header has two to five bytes; the protocol name stands behind it with its length.
  const name = bytes.subarray(0, 12).indexOf('MQTT')
  const level = name === -1 ? 0 : (bytes[name + 4] ?? 0) & 0x7f
  return { version: level >= 5 ? 5 : 4, packetBytesMax: Number.POSITIVE_INFINITY, wantsReasons: true }
}

export function peerOf({ protocolVersion, properties }: IConnectPacket): Peer {
  return {
    version: protocolVersion === 5 ? 5 : 4,
    // 0 is refused, and the refusal must be told.
    packetBytesMax: properties?.maximumPacketSize || Number.POSITIVE_INFINITY,
    wantsReasons: properties?.requestProblemInformation !== false,
  }
}

/** CONNACK that accepts. Undefined where the client takes no packet so long. */
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

/** CONNACK that refuses, or undefined where the connection just closes. */
export function encodeRefused(peer: Peer, reason: Reason, reasonString: string): Buffer | undefined {
  const { code, connack } = reasons[reason]
  if (peer.version === 4) {
    return connack === undefined ? undefined : generate({ cmd: 'connack', sessionPresent: false, returnCode: connack })
  }
  return encodeSaying(peer, { cmd: 'connack', sessionPresent: false, reasonCode: code }, reasonString)
}

/** DISCONNECT of the server; MQTT 3.1.1 has none. */
export function encodeDisconnect(peer: Peer, reason: Reason, reasonString: string): Buffer | undefined {
  if (peer.version === 4) return undefined
  return encodeSaying(peer, { cmd: 'disconnect', reasonCode: reasons[reason].code }, reasonString)
}

/** Every subscription fails: nothing is ever delivered to a client. */
export function encodeNotSubscribed(peer: Peer, messageId: number, subscriptions: number): Buffer | undefined {
  // 0x83 is "implementation specific error"; MQTT 3.1.1 has one code for all failures.
  const granted = Array<number>(subscriptions).fill(peer.version === 4 ? 0x80 : 0x83)
  const why = 'this service takes messages in and delivers none to clients'
  return encodeSaying(peer, { cmd: 'suback', messageId, granted }, peer.wantsReasons ? why : undefined)
}

export function encodeNotUnsubscribed(peer: Peer, messageId: number, subscriptions: number): Buffer | undefined {
  // No subscription existed.
  const granted = peer.version === 4 ? [] : Array<number>(subscriptions).fill(0x11)
  return encode(peer, { cmd: 'unsuback', messageId, granted })
}

/** The reason is left out where the packet would be too long with it [MQTT-3.2.2-19], [MQTT-3.14.2-3], [MQTT-3.9.2-1]. */
function encodeSaying(
  peer: Peer,
  packet: IConnackPacket | IDisconnectPacket | ISubackPacket,
  reasonString: string | undefined,
): Buffer | undefined {
  const saying = reasonString === undefined ? undefined : encode(peer, { ...packet, properties: { reasonString } })
  return saying ?? encode(peer, packet)
}

function encode(peer: Peer, packet: Packet): Buffer | undefined {
  const bytes = generate(packet, { protocolVersion: peer.version })
  return bytes.length > peer.packetBytesMax ? undefined : bytes // [MQTT-3.1.2-25]
}

export const pingResponse: Buffer = generate({ cmd: 'pingresp' })

/** Bytes of a PUBACK that says success, in both versions: MQTT 5 leaves the reason code out (§3.4.2.1). */
export const PUBACK_BYTES = 4

export function writePuback(into: Buffer, at: number, messageId: number): void {
  into[at] = 0x40
  into[at + 1] = 2
  into[at + 2] = messageId >> 8
  into[at + 3] = messageId & 0xff
}

export type { IConnectPacket }
