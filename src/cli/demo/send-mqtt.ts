import { generate, type Packet, parser } from 'mqtt-packet'
import { patienceMs } from './patience.ts'

export type SendMqttOptions = {
  /** ws://…/mqtt */
  readonly url: string
  readonly apiKey: string
  readonly topic: string
  /** Lines as byte strings (latin1). Each is sent as one message. */
  readonly lines: readonly string[]
  readonly onAcknowledged: (messages: number) => void
}

/** Messages in flight. */
const window = 500

/** Publishes with QoS 1 over one WebSocket. Resolves when every message is acknowledged. A minimal client, as any user might write it. */
export async function sendOverMqtt({ url, apiKey, topic, lines, onAcknowledged }: SendMqttOptions): Promise<void> {
  const socket = new WebSocket(url, 'mqtt')
  socket.binaryType = 'arraybuffer'
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const fail = (why: string) => reject(new Error(`MQTT at ${url}: ${why}`))
  const timer = setTimeout(() => fail(`no response within ${patienceMs / 60_000} minutes`), patienceMs)
  let sent = 0
  let acknowledged = 0
  const send = (packet: Packet) => socket.send(new Uint8Array(generate(packet)))
  const sendMore = () => {
    for (; sent < lines.length && sent - acknowledged < window; sent += 1) {
      const payload = Buffer.from(lines[sent] ?? '', 'latin1')
      send({ cmd: 'publish', topic, payload, qos: 1, messageId: (sent % 0xffff) + 1, dup: false, retain: false })
    }
  }
  const packets = parser({ protocolVersion: 4 })
  packets.on('error', (error) => fail(error.message))
  packets.on('packet', (packet) => {
    timer.refresh()
    if (packet.cmd === 'connack' && packet.returnCode !== 0) fail(`connection refused with code ${packet.returnCode}`)
    if (packet.cmd === 'puback') onAcknowledged(++acknowledged)
    if (acknowledged === lines.length) resolve()
    else sendMore()
  })
  socket.onopen = () =>
    send({
      cmd: 'connect',
      protocolId: 'MQTT',
      protocolVersion: 4,
      clean: true,
      clientId: 'inlet-demo',
      keepalive: 60,
      username: 'demo',
      password: Buffer.from(apiKey),
    })
  socket.onmessage = ({ data }) => void packets.parse(Buffer.from(data))
  socket.onerror = () => fail('connection failed')
  socket.onclose = () => fail('connection closed')
  try {
    await promise
    send({ cmd: 'disconnect' })
  } finally {
    clearTimeout(timer)
    socket.close()
  }
}
