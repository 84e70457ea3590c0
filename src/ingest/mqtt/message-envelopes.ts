import { encodeEnvelope, groupProperties } from '#model/record-envelope.ts'
import type { MessageProperties } from './packets/publish.ts'

/** Encodes the envelopes of one connection's messages. A message without properties and with the same topic as the previous one reuses its envelope. */
export class MessageEnvelopes {
  readonly #clientId: string
  #topic: string | undefined
  #bytes: Uint8Array | undefined

  constructor(clientId: string) {
    this.#clientId = clientId
  }

  encode(topic: string, properties: MessageProperties | undefined): Uint8Array {
    if (properties !== undefined) return this.#encode(topic, properties)
    if (this.#bytes === undefined || topic !== this.#topic) {
      this.#bytes = this.#encode(topic, undefined)
      this.#topic = topic
    }
    return this.#bytes
  }

  #encode(topic: string, properties: MessageProperties | undefined): Uint8Array {
    const { contentType, userProperties = [] } = properties ?? {}
    return encodeEnvelope({
      protocol: 'mqtt',
      topic,
      client_id: this.#clientId,
      ...(contentType === undefined ? {} : { content_type: contentType }),
      ...(userProperties.length === 0 ? {} : { user_properties: groupProperties(userProperties) }),
    })
  }
}
