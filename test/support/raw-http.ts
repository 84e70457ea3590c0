import { connect, type Socket } from 'node:net'

export type RawAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The body as JSON. */
  readonly json: Record<string, unknown>
}

/** A client that sends any bytes and reads the responses one by one. */
export class RawClient implements AsyncDisposable {
  readonly socket: Socket
  /** Resolves when the connection has ended: 'end' after a FIN, 'reset' after an RST. */
  readonly closed: Promise<'end' | 'reset'>
  #received = ''
  #ended = false
  #changed = Promise.withResolvers<void>()

  private constructor(socket: Socket) {
    this.socket = socket
    const { promise, resolve } = Promise.withResolvers<'end' | 'reset'>()
    this.closed = promise
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      this.#received += text
      this.#wake()
    })
    socket.on('end', () => {
      this.#ended = true
      this.#wake()
      resolve('end')
    })
    socket.on('error', () => undefined)
    socket.on('close', (hadError) => {
      this.#ended = true
      this.#wake()
      resolve(hadError ? 'reset' : 'end')
    })
  }

  static async connect(url: string, options: { readonly allowHalfOpen?: boolean } = {}): Promise<RawClient> {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: options.allowHalfOpen ?? false, noDelay: true })
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    return new RawClient(socket)
  }

  /** Resolves when the kernel has accepted the bytes or the connection has ended. */
  async send(bytes: string | Uint8Array): Promise<void> {
    if (this.socket.destroyed) return
    await new Promise<void>((resolve) => this.socket.write(bytes, () => resolve()))
  }

  /** Returns the next response, including 100. Rejects if the connection ends first. */
  async answer(): Promise<RawAnswer> {
    for (;;) {
      const taken = takeAnswer(this.#received)
      if (taken !== undefined) {
        this.#received = taken.rest
        return taken.answer
      }
      if (this.#ended) throw new Error(`the connection ended within an answer: ${JSON.stringify(this.#received.slice(0, 200))}`)
      await this.#changed.promise
    }
  }

  /** Received text that is not yet part of a response. */
  get unread(): string {
    return this.#received
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy()
    await this.closed
  }

  #wake(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers<void>()
  }
}

function takeAnswer(text: string): { answer: RawAnswer; rest: string } | undefined {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const [statusLine = '', ...lines] = text.slice(0, headEnd).split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
  const length = Number(headers['content-length'] ?? 0)
  const bodyStart = headEnd + 4
  if (text.length < bodyStart + length) return undefined
  const body = Buffer.from(text.slice(bodyStart, bodyStart + length), 'latin1').toString('utf8')
  const isJson = headers['content-type']?.includes('json') === true && body !== ''
  return {
    answer: {
      status: Number(statusLine.split(' ')[1]),
      headers,
      body,
      json: isJson ? (JSON.parse(body) as Record<string, unknown>) : {},
    },
    rest: text.slice(bodyStart + length),
  }
}
