/**
 * A cheap load generator for MQTT: raw sockets, prepared packets, a fixed number of messages in flight per connection.
 *
 * With QoS 0 every 50th message has QoS 1: only its PUBACK proves that the messages before it have arrived.
 * `node mqtt-load.ts`: receives a job as a message and sends its result as a message.
 */
import { connect, type Socket } from 'node:net'
import { generate } from 'mqtt-packet'
import { benchKey } from './inlet-node.ts'

export type MqttJob = {
  readonly port: number
  readonly transport: 'tcp' | 'websocket'
  readonly qos: 0 | 1
  readonly connections: number
  readonly messageBytes: number
  /** Unacknowledged messages per connection. */
  readonly window: number
  readonly warmUpMs: number
  readonly measureMs: number
}
export type MqttOutcome = { readonly messages: number; readonly seconds: number }
export type MqttLoadMessage = { readonly started: true } | { readonly outcome: MqttOutcome }

const fence = 50
const maskKey = Buffer.from([0x5a, 0xc3, 0x17, 0x88])

/** Returns a binary frame of a client, RFC 6455 §5.2. */
export function frame(payload: Buffer): Buffer {
  const head =
    payload.length < 126
      ? Buffer.from([0x82, 0x80 | payload.length])
      : Buffer.from([0x82, 0x80 | 126, payload.length >> 8, payload.length & 0xff])
  const masked = Buffer.from(payload.map((byte, at) => byte ^ (maskKey[at % 4] ?? 0)))
  return Buffer.concat([head, maskKey, masked])
}

/** Returns what a connection sends per PUBACK, for each message id of a window. */
function prepare({ qos, transport, messageBytes, window }: MqttJob): readonly Buffer[] {
  const event = '{"id":"0191f2c4-7d1e-7c3a-9b0e-5a6f1c2d3e4f","at":"2026-11-20T08:15:30.123Z","value":12.5,"text":"'
  const payload = `${event}${'x'.repeat(messageBytes - event.length - 2)}"}`
  const publish = (id: number, level: 0 | 1) => {
    const packet = generate({
      cmd: 'publish',
      topic: 'plant/7/sensor',
      payload,
      qos: level,
      dup: false,
      retain: false,
      messageId: id,
    })
    return transport === 'tcp' ? packet : frame(packet)
  }
  return Array.from({ length: window }, (_, index) => {
    const last = publish(index + 1, 1)
    return qos === 1 ? last : Buffer.concat([...Array.from({ length: fence - 1 }, () => publish(0, 0)), last])
  })
}

/** Counts the bytes of MQTT that a server sends, over TCP or WebSocket. */
function unwrapper(transport: MqttJob['transport'], onPayload: (bytes: Buffer) => void): (chunk: Buffer) => void {
  if (transport === 'tcp') return onPayload
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      const short = (rest[1] ?? 0) & 0x7f
      const head = short === 126 ? 4 : 2
      if (rest.length < head) return
      const length = short === 126 ? rest.readUInt16BE(2) : short
      if (rest.length < head + length) return
      onPayload(rest.subarray(head, head + length))
      rest = rest.subarray(head + length)
    }
  }
}

async function run(job: MqttJob, onStarted: () => void): Promise<MqttOutcome> {
  const { port, transport, connections, window } = job
  const sends = prepare(job)
  const perAck = job.qos === 1 ? 1 : fence
  let acks = 0
  let ending = false
  const sockets: Socket[] = []

  const open = async (index: number): Promise<Socket> => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    sockets.push(socket)
    const { promise: accepted, resolve, reject } = Promise.withResolvers<void>()
    const failed = (error: Error) => (ending ? undefined : reject(error))
    socket.on('error', failed)
    socket.on('close', () => failed(new Error('the server closed a connection')))
    const hello = generate({
      cmd: 'connect',
      clientId: `bench-${index}`,
      keepalive: 60,
      clean: true,
      username: 'bench',
      password: Buffer.from(benchKey),
    })
    let isOpen = false
    let slot = 0
    const refill = (count: number) => {
      const parts: Buffer[] = []
      for (let n = 0; n < count; n += 1) {
        parts.push(sends[slot] ?? Buffer.alloc(0))
        slot = (slot + 1) % window
      }
      socket.write(parts.length === 1 ? (parts[0] ?? '') : Buffer.concat(parts))
    }
    let odd = 0
    const receive = unwrapper(transport, (bytes) => {
      if (!isOpen) {
        if (bytes[0] !== 0x20 || bytes[3] !== 0) throw new Error(`connection rejected: ${bytes.toString('hex')}`)
        isOpen = true
        resolve()
        return
      }
      const count = Math.floor((bytes.length + odd) / 4)
      odd = (bytes.length + odd) % 4
      acks += count
      if (!ending && count > 0) refill(count)
    })
    socket.once('connect', () => {
      if (transport === 'tcp') socket.write(hello)
      else {
        socket.write(
          'GET /mqtt HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
            'Sec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
        )
      }
    })
    let upgraded = transport === 'tcp'
    socket.on('data', (chunk: Buffer) => {
      if (upgraded) receive(chunk)
      else {
        if (!chunk.toString('latin1').startsWith('HTTP/1.1 101')) throw new Error(`upgrade failed: ${chunk}`)
        upgraded = true
        socket.write(frame(hello))
      }
    })
    await accepted
    starts.push(() => refill(window))
    return socket
  }

  const starts: (() => void)[] = []
  const atOnce = 200
  for (let index = 0; index < connections; index += atOnce) {
    await Promise.all(Array.from({ length: Math.min(atOnce, connections - index) }, (_, n) => open(index + n)))
  }
  for (const begin of starts) begin()
  await new Promise((resolve) => setTimeout(resolve, job.warmUpMs))
  onStarted()
  const [before, start] = [acks, performance.now()]
  await new Promise((resolve) => setTimeout(resolve, job.measureMs))
  const outcome = { messages: (acks - before) * perAck, seconds: (performance.now() - start) / 1000 }
  ending = true
  for (const socket of sockets) socket.destroy()
  return outcome
}

if (import.meta.main) {
  const tell = (message: MqttLoadMessage) => process.send?.(message)
  process.on('message', async (job: MqttJob) => tell({ outcome: await run(job, () => tell({ started: true })) }))
}
