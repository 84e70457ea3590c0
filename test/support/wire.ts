/** A network link between a program and Postgres that a test can cut, or stop so that neither side notices. */
import { connect, createServer, type Socket } from 'node:net'

export type Wire = AsyncDisposable & {
  /** The URL of the database through this link. */
  readonly url: string
  /** Closes all connections, and refuses further ones. */
  cut(): Promise<void>
  mend(): Promise<void>
  /** Passes nothing on from now on, and closes nothing. */
  freeze(): void
  thaw(): void
}

export async function aWire(url: string): Promise<Wire> {
  const { hostname, port, searchParams } = new URL(url)
  const folder = searchParams.get('host')
  const sockets = new Set<Socket>()
  let isFrozen = false
  const server = createServer((near) => {
    const far = folder === null ? connect(Number(port || 5432), hostname) : connect(`${folder}/.s.PGSQL.${port || 5432}`)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
      from.pipe(to)
      if (isFrozen) from.pause()
    }
  })
  const listen = (at: number) => new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve))
  await listen(0)
  const address = server.address()
  const at = typeof address === 'object' && address !== null ? address.port : 0
  const through = new URL(url)
  through.searchParams.delete('host')
  through.hostname = '127.0.0.1'
  through.port = String(at)
  const cut = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    sockets.clear()
    await closed
  }
  return {
    url: through.href,
    cut,
    mend: () => listen(at),
    freeze() {
      isFrozen = true
      for (const socket of sockets) socket.pause()
    },
    thaw() {
      isFrozen = false
      for (const socket of sockets) socket.resume()
    },
    [Symbol.asyncDispose]: cut,
  }
}
