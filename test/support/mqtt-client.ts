/** An MQTT client for single packets: it sends what a test says and does nothing by itself. */
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { generate, type IConnectPacket, type Packet, parser } from 'mqtt-packet'
import { WebSocket } from 'ws'
import { secretOf } from './ingest-node.ts'

export type Version = 4 | 5

// biome-ignore lint/suspicious/noExplicitAny: tests look into packets of every kind
export type Received = any

export type Over = {
  readonly port: number
  readonly transport?: 'tcp' | 'tls' | 'ws' | 'wss'
  readonly version?: Version
  /** Path of the WebSocket. */
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly servername?: string
}

export class MqttClient implements AsyncDisposable {
  readonly version: Version
  readonly socket: Socket | undefined
  readonly webSocket: WebSocket | undefined
  /** Close code of the WebSocket; 0 for a socket. */
  closeCode = 0
  readonly #parser
  readonly #received: Packet[] = []
  #isClosed = false
  #changed = Promise.withResolvers<void>()

  private constructor({ port, transport = 'tcp', version = 4, path = '/mqtt', headers = {}, servername }: Over) {
    this.version = version
    this.#parser = parser({ protocolVersion: version })
    this.#parser.on('packet', (packet) => {
      this.#received.push(packet)
      this.#wake()
    })
    // A node must send only readable packets, unless the test has made it assume another version.
    this.#parser.on('error', (error: Error) => {
      this.#received.push({ cmd: 'unreadable', message: error.message } as never)
      this.#wake()
    })
    const tls = { rejectUnauthorized: false, ...(servername === undefined ? {} : { servername }) }
    if (transport === 'ws' || transport === 'wss') {
      const webSocket = new WebSocket(`${transport}://127.0.0.1:${port}${path}`, 'mqtt', { headers, ...tls })
      this.webSocket = webSocket
      webSocket.on('message', (bytes: Buffer) => this.#parser.parse(bytes))
      webSocket.on('error', () => undefined)
      webSocket.on('close', (code) => {
        this.closeCode = code
        this.#close()
      })
    } else {
      const socket = transport === 'tcp' ? connectTcp(port, '127.0.0.1') : connectTls({ port, host: '127.0.0.1', ...tls })
      socket.setNoDelay(true)
      this.socket = socket
      socket.on('data', (bytes: Buffer) => this.#parser.parse(bytes))
      socket.on('error', () => undefined)
      socket.on('close', () => this.#close())
    }
  }

  static async open(over: Over): Promise<MqttClient> {
    const client = new MqttClient(over)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const opened = { tcp: 'connect', tls: 'secureConnect', ws: 'open', wss: 'open' }[over.transport ?? 'tcp']
    const carrier = client.socket ?? client.webSocket
    carrier?.once(opened, () => resolve())
    carrier?.once('error', reject)
    await promise
    return client
  }

  /** Opens a connection, sends CONNECT and returns the response. */
  static async connect(over: Over, packet: Partial<IConnectPacket> = {}): Promise<{ client: MqttClient; connack: Received }> {
    const client = await MqttClient.open(over)
    client.send(connectPacket(client.version, packet))
    return { client, connack: await client.next() }
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Number of packets that have arrived and were not read yet. */
  get waiting(): number {
    return this.#received.length
  }

  send(...packets: readonly Packet[]): void {
    this.sendBytes(Buffer.concat(packets.map((packet) => generate(packet, { protocolVersion: this.version }))))
  }

  sendBytes(bytes: Buffer): void {
    if (this.socket !== undefined) this.socket.write(bytes)
    else this.webSocket?.send(bytes)
  }

  publish(payload: string | Buffer, more: Record<string, unknown> = {}): void {
    this.send({ cmd: 'publish', topic: 'plant/7', payload, qos: 1, messageId: 1, dup: false, retain: false, ...more } as Packet)
  }

  /** Returns the next packet, or undefined if the connection ended. */
  async next(timeoutMs = 5_000): Promise<Received> {
    const deadline = performance.now() + timeoutMs
    while (this.#received.length === 0 && !this.#isClosed) {
      const left = deadline - performance.now()
      if (left <= 0) throw new Error(`no packet came in ${timeoutMs} ms`)
      let timer: NodeJS.Timeout | undefined
      await Promise.race([this.#changed.promise, new Promise((resolve) => (timer = setTimeout(resolve, left)))])
      clearTimeout(timer)
    }
    return this.#received.shift()
  }

  /** Waits for the end of the connection and skips the packets before it. */
  async closed(): Promise<void> {
    while ((await this.next()) !== undefined);
  }

  /** Disconnects without a DISCONNECT. */
  destroy(): void {
    this.socket?.destroy()
    this.webSocket?.terminate()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.destroy()
  }

  #close(): void {
    this.#isClosed = true
    this.#wake()
  }

  #wake(): void {
    const changed = this.#changed
    this.#changed = Promise.withResolvers<void>()
    changed.resolve()
  }
}

export function connectPacket(version: Version, more: Partial<IConnectPacket> = {}): IConnectPacket {
  return {
    cmd: 'connect',
    protocolId: 'MQTT',
    protocolVersion: version,
    clean: true,
    clientId: 'sensor-7',
    keepalive: 60,
    username: 'anybody',
    password: Buffer.from(secretOf('a')),
    ...more,
  } as IConnectPacket
}
