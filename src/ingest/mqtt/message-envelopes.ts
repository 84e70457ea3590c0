import { encodeEnvelope, groupProperties } from '#model/record-envelope.ts'
import type { KeptSender } from '../gate/kept-sender.ts'
import type { MessageProperties } from './packets/publish.ts'

/** Encodes the envelopes of one connection's messages. A message without properties, with the topic of the previous one, reuses its envelope. */
export class MessageEnvelopes {
  readonly #clientId: string
  #topic: string | undefined
  #sender: KeptSender | undefined
  #bytes: Uint8Array | undefined

  constructor(clientId: string) {
    this.#clientId = clientId
  }

  /** `sender` is the same object until what the endpoint keeps of the client changes. */
  encode(topic: string, properties: MessageProperties | undefined, sender: KeptSender | undefined): Uint8Array {
    if (properties !== undefined) return this.#encode(topic, properties, sender)
    if (this.#bytes === undefined || topic !== this.#topic || sender !== this.#sender) {
      this.#bytes = this.#encode(topic, undefined, sender)
      this.#topic = topic
      this.#sender = sender
    }
    return this.#bytes
  }

  #encode(topic: string, properties: MessageProperties | undefined, sender: KeptSender | undefined): Uint8Array {
    const { contentType, userProperties = [] } = properties ?? {}
    return encodeEnvelope({
      protocol: 'mqtt',
      topic,
      client_id: this.#clientId,
      ...(contentType === undefined ? {} : { content_type: contentType }),
      ...(userProperties.length === 0 ? {} : { user_properties: groupProperties(userProperties) }),
      ...sender,
    })
  }
}
