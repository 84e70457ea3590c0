/**
 * Every packet but PUBLISH, by mqtt-packet.
 *
 * Law: the parser gets one whole packet, and nothing that it throws or forgives gets past this file.
 */
import type { Buffer } from 'node:buffer'
import { generate, type IConnectPacket, type Packet, parser } from 'mqtt-packet'
import type { ProtocolVersion } from './publish.ts'
import { type Reason, Refusal, reasons } from './reason.ts'

/** Throws Refusal. `version` is undefined for the packet that opens the connection. */
export function readControlPacket(bytes: Buffer, version: ProtocolVersion | undefined): Packet {
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
  if ('properties' in packet) checkOnce(packet.properties)
  if (packet.cmd === 'connect') checkOnce(packet.will?.properties)
  return packet
}

function checkOnce(properties: object | undefined): void {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (Array.isArray(value)) throw new Refusal('protocol_error', `the property ${name} is there twice`) // §2.2.2.2
  }
}

/** [MQTT-1.5.4-1]. mqtt-packet puts U+FFFD for what is not UTF-8; nobody means that character. */
export function checkText(name: string, text: string): string {
  if (text.includes('\uFFFD') || text.includes('\0')) throw new Refusal('malformed_packet', `the ${name} is not UTF-8`)
  return text
}

/** CONNACK that accepts. */
export function encodeAccepted(
  version: ProtocolVersion,
  properties: {
    readonly maximumQoS: 0 | 1
    readonly receiveMaximum: number
    readonly maximumPacketSize: number
    readonly topicAliasMaximum: number
    readonly sessionExpiryInterval: number | undefined
    readonly assignedClientIdentifier: string | undefined
    readonly serverKeepAlive: number | undefined
  },
): Buffer {
  if (version === 4) return generate({ cmd: 'connack', sessionPresent: false, returnCode: 0 })
  const { sessionExpiryInterval, assignedClientIdentifier, serverKeepAlive, ...always } = properties
  return generate(
    {
      cmd: 'connack',
      sessionPresent: false,
      reasonCode: 0,
      properties: {
        ...always,
        wildcardSubscriptionAvailable: false,
        subscriptionIdentifiersAvailable: false,
        sharedSubscriptionAvailable: false,
        ...(sessionExpiryInterval === undefined ? {} : { sessionExpiryInterval }),
        ...(assignedClientIdentifier === undefined ? {} : { assignedClientIdentifier }),
        ...(serverKeepAlive === undefined ? {} : { serverKeepAlive }),
      },
    },
    { protocolVersion: 5 },
  )
}

/** CONNACK that refuses, or undefined where the connection just closes. */
export function encodeRefused(version: ProtocolVersion, reason: Reason, reasonString: string): Buffer | undefined {
  const { code, connack } = reasons[reason]
  if (version === 5) {
    return generate(
      { cmd: 'connack', sessionPresent: false, reasonCode: code, properties: { reasonString } },
      { protocolVersion: 5 },
    )
  }
  return connack === undefined ? undefined : generate({ cmd: 'connack', sessionPresent: false, returnCode: connack })
}

/** DISCONNECT of the server; MQTT 3.1.1 has none. */
export function encodeDisconnect(version: ProtocolVersion, reason: Reason, reasonString: string): Buffer | undefined {
  if (version === 4) return undefined
  return generate({ cmd: 'disconnect', reasonCode: reasons[reason].code, properties: { reasonString } }, { protocolVersion: 5 })
}

/** Every subscription fails: nothing is ever delivered to a client. */
export function encodeNotSubscribed(version: ProtocolVersion, messageId: number, subscriptions: number): Buffer {
  if (version === 4) return generate({ cmd: 'suback', messageId, granted: Array<number>(subscriptions).fill(0x80) })
  return generate(
    {
      cmd: 'suback',
      messageId,
      // Implementation specific error.
      granted: Array<number>(subscriptions).fill(0x83),
      properties: { reasonString: 'this service takes messages in and delivers none to clients' },
    },
    { protocolVersion: 5 },
  )
}

export function encodeNotUnsubscribed(version: ProtocolVersion, messageId: number, subscriptions: number): Buffer {
  // No subscription existed.
  const granted = version === 4 ? [] : Array<number>(subscriptions).fill(0x11)
  return generate({ cmd: 'unsuback', messageId, granted }, { protocolVersion: version })
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
