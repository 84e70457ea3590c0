/**
 * Reads PUBLISH, by far the most frequent packet: in place, strictly, and with few allocations.
 *
 * Owns: its layout in MQTT 3.1.1 (§3.3) and 5 (§3.3). Does not own: what an endpoint allows.
 * Law: it reads no byte outside its packet. Packets that violate the standard are refused, never repaired.
 */
import { type Buffer, isUtf8 } from 'node:buffer'
import { mqttLimits } from '#model/limits.ts'
import { MqttError } from './reason.ts'

export type ProtocolVersion = 4 | 5

export type Publish = {
  readonly qos: number
  /** 0 with QoS 0. */
  readonly messageId: number
  /** Empty if the packet has only an alias. */
  readonly topic: string
  /** 0 for none. */
  readonly topicAlias: number
  /** Undefined if there are none. */
  readonly properties: MessageProperties | undefined
  /** A view of the packet. */
  readonly payload: Buffer
}

export type MessageProperties = {
  readonly contentType: string | undefined
  /** In the order of the packet; names may repeat. */
  readonly userProperties: readonly (readonly [name: string, value: string])[]
}

export type Message = {
  readonly topic: string
  readonly properties: MessageProperties | undefined
  readonly payload: Buffer
}

/** Shared, because a separate empty array would cost each connection 200 bytes. */
const noBytes: Uint8Array = new Uint8Array(0)

/** Caches the topic of the previous message, as bytes and as text: most clients publish to the same topic again and again. */
export class LastTopic {
  #bytes = noBytes
  #text = ''

  /** Throws MqttError for an invalid topic. */
  read(bytes: Buffer, start: number, end: number): string {
    if (!this.#isAt(bytes, start, end)) {
      const text = textAt(bytes, start, end)
      checkTopic(text, end - start)
      this.#bytes = new Uint8Array(bytes.subarray(start, end))
      this.#text = text
    }
    return this.#text
  }

  #isAt(bytes: Buffer, start: number, end: number): boolean {
    const last = this.#bytes
    if (last.length !== end - start || last.length === 0) return false
    for (let at = 0; at < last.length; at += 1) if (last[at] !== bytes[start + at]) return false
    return true
  }
}

export function readPublish(
  bytes: Buffer,
  at: number,
  body: number,
  end: number,
  version: ProtocolVersion,
  lastTopic: LastTopic,
): Publish {
  const flags = bytes[at] ?? 0
  const qos = (flags >> 1) & 3
  const isDup = (flags & 8) !== 0
  if (qos === 3) throw malformed('both QoS bits are set') // [MQTT-3.3.1-4]
  if (isDup && qos === 0) throw malformed('DUP is set with QoS 0') // [MQTT-3.3.1-2]
  const topicEnd = textEnd(bytes, body, end)
  const hasTopic = topicEnd > body + 2
  if (!hasTopic && version === 4) throw invalidTopic('a topic is empty') // [MQTT-4.7.3-1]
  const topic = hasTopic ? lastTopic.read(bytes, body + 2, topicEnd) : ''
  let next = topicEnd
  let messageId = 0
  if (qos > 0) {
    messageId = uint16(bytes, next, end)
    if (messageId === 0) throw malformed('a packet identifier is 0') // [MQTT-2.2.1-3]
    next += 2
  }
  if (version === 4) {
    return { qos, messageId, topic, topicAlias: 0, properties: undefined, payload: bytes.subarray(next, end) }
  }
  const propertiesAt = variableIntegerEnd(bytes, next, end)
  const payloadAt = propertiesAt + variableInteger(bytes, next, propertiesAt)
  if (payloadAt > end) throw malformed('the properties are longer than their packet')
  const { topicAlias, properties } = payloadAt === propertiesAt ? noProperties : readProperties(bytes, propertiesAt, payloadAt)
  if (!hasTopic && topicAlias === 0) {
    throw new MqttError('protocol_error', 'a message has neither a topic nor an alias for one') // §3.3.2.3.4
  }
  return { qos, messageId, topic, topicAlias, properties, payload: bytes.subarray(payloadAt, end) }
}

/** Throws MqttError. */
export function checkTopic(topic: string, bytes: number): void {
  if (topic === '') throw invalidTopic('a topic is empty') // [MQTT-4.7.3-1]
  if (bytes > mqttLimits.topicBytesMax) throw invalidTopic(`a topic is longer than ${mqttLimits.topicBytesMax} bytes`)
  let levels = 1
  for (let at = 0; at < topic.length; at += 1) {
    const char = topic.charCodeAt(at)
    if (char === SLASH) levels += 1
    else if (char === PLUS || char === HASH)
      throw invalidTopic('the topic of a message must not have wildcards') // [MQTT-3.3.2-2]
    else if (char === 0) throw malformed('a topic has the character U+0000') // [MQTT-4.7.3-2]
  }
  if (levels > mqttLimits.topicLevelsMax) throw invalidTopic(`a topic has more than ${mqttLimits.topicLevelsMax} levels`)
}

const [HASH, PLUS, SLASH] = [0x23, 0x2b, 0x2f]

/** Property identifiers, §2.2.2.2. */
const property = {
  payloadFormat: 0x01,
  messageExpiry: 0x02,
  contentType: 0x03,
  responseTopic: 0x08,
  correlationData: 0x09,
  subscriptionIdentifier: 0x0b,
  topicAlias: 0x23,
  userProperty: 0x26,
} as const

const noProperties = { topicAlias: 0, properties: undefined } as const

function readProperties(
  bytes: Buffer,
  start: number,
  end: number,
): { readonly topicAlias: number; readonly properties: MessageProperties | undefined } {
  if (end - start > mqttLimits.propertiesBytesMax) {
    throw new MqttError('packet_too_large', `the properties of a message are more than ${mqttLimits.propertiesBytesMax} bytes`)
  }
  let topicAlias = 0
  let contentType: string | undefined
  const userProperties: [string, string][] = []
  const seen = new Set<number>()
  let at = start
  while (at < end) {
    const id = bytes[at] ?? 0
    at += 1
    if (id !== property.userProperty) {
      if (seen.has(id)) throw new MqttError('protocol_error', `property ${id} of a message appears twice`) // §3.3.2.3
      seen.add(id)
    }
    switch (id) {
      case property.payloadFormat:
        if (at >= end || (bytes[at] ?? 2) > 1) throw malformed('the payload format must be 0 or 1')
        at += 1
        break
      case property.messageExpiry:
        at = within(at + 4, end)
        break
      case property.correlationData:
        at = textEnd(bytes, at, end)
        break
      case property.responseTopic:
        at = responseTopicEnd(bytes, at, end)
        break
      case property.contentType: {
        const stop = textEnd(bytes, at, end)
        contentType = propertyText(bytes, at + 2, stop)
        at = stop
        break
      }
      case property.topicAlias:
        topicAlias = uint16(bytes, at, end)
        // [MQTT-3.3.2-8], [MQTT-3.3.2-9]
        if (topicAlias === 0 || topicAlias > mqttLimits.topicAliasMax) {
          throw new MqttError('topic_alias_invalid', `a topic alias must be from 1 to ${mqttLimits.topicAliasMax}`)
        }
        at += 2
        break
      case property.userProperty: {
        const nameEnd = textEnd(bytes, at, end)
        const valueEnd = textEnd(bytes, nameEnd, end)
        userProperties.push([propertyText(bytes, at + 2, nameEnd), propertyText(bytes, nameEnd + 2, valueEnd)])
        at = valueEnd
        break
      }
      default:
        // [MQTT-3.3.4-6] for the subscription identifier, which only a server may send.
        if (id === property.subscriptionIdentifier)
          throw new MqttError('protocol_error', 'a message has a subscription identifier')
        throw malformed(`a message must not have the property ${id}`) // §2.2.2.2
    }
  }
  const none = contentType === undefined && userProperties.length === 0
  return { topicAlias, properties: none ? undefined : { contentType, userProperties } }
}

function responseTopicEnd(bytes: Buffer, at: number, end: number): number {
  const stop = textEnd(bytes, at, end)
  const text = propertyText(bytes, at + 2, stop)
  // [MQTT-3.3.2-14]
  if (text.includes('+') || text.includes('#')) throw new MqttError('protocol_error', 'a response topic must not have wildcards')
  return stop
}

/** Returns the end of the string or binary at `at`, which starts with its length. */
function textEnd(bytes: Buffer, at: number, end: number): number {
  return within(at + 2 + uint16(bytes, at, end), end)
}

function textAt(bytes: Buffer, start: number, end: number): string {
  // [MQTT-1.5.4-1]: ill-formed UTF-8 closes the connection.
  if (!isUtf8(bytes.subarray(start, end))) throw malformed('a text is not UTF-8')
  return bytes.toString('utf8', start, end)
}

function propertyText(bytes: Buffer, start: number, end: number): string {
  const text = textAt(bytes, start, end)
  if (text.includes('\0')) throw malformed('a text has the character U+0000') // [MQTT-1.5.4-2]
  return text
}

function uint16(bytes: Buffer, at: number, end: number): number {
  within(at + 2, end)
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
}

function variableIntegerEnd(bytes: Buffer, at: number, end: number): number {
  for (let next = at; next < end && next < at + 4; next += 1) if (((bytes[next] ?? 0) & 0x80) === 0) return next + 1
  throw malformed('the length of the properties is incomplete')
}

function variableInteger(bytes: Buffer, at: number, end: number): number {
  let value = 0
  for (let next = end - 1; next >= at; next -= 1) value = value * 0x80 + ((bytes[next] ?? 0) & 0x7f)
  return value
}

function within(at: number, end: number): number {
  if (at > end) throw malformed('a packet ends inside a field')
  return at
}

function malformed(message: string): MqttError {
  return new MqttError('malformed_packet', message)
}

function invalidTopic(message: string): MqttError {
  return new MqttError('topic_name_invalid', message)
}
