/** Clients that the node must survive: garbage, requests that end early, and slow ones. Nothing of theirs may be stored. */
import { connect } from 'node:net'
import type { Random } from '../random.ts'

export function makeNoise({
  ingestUrl,
  endpointId,
  apiKey,
  random,
  forMs,
}: {
  readonly ingestUrl: string
  readonly endpointId: string
  readonly apiKey: string
  readonly random: Random
  readonly forMs: number
}): Promise<void> {
  const port = Number(new URL(ingestUrl).port)
  const head = (length: number) =>
    `POST /v1/ingest?endpoint=${endpointId} HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${apiKey}\r\n` +
    `content-type: application/x-ndjson\r\ncontent-length: ${length}\r\n\r\n`
  const greetings: readonly (() => string)[] = [
    () => String.fromCharCode(...Array.from({ length: 200 }, () => random.between(1, 255))),
    () => `${head(1_000)}{"q":-1`,
    () => `POST /v1/ingest HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n`,
    () =>
      `GET /mqtt HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n\r\n`,
    () => head(50_000),
  ]
  const clients = Array.from({ length: 8 }, async () => {
    const until = performance.now() + forMs
    while (performance.now() < until) {
      await speak(port, random.pick(greetings)(), random.between(50, 800))
    }
  })
  return Promise.all(clients).then(() => undefined)
}

/** Sends half of the text, waits, sends the rest, and hangs up. */
async function speak(port: number, text: string, forMs: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.resume()
  socket.write(text.slice(0, text.length / 2), 'latin1')
  await new Promise((resolve) => setTimeout(resolve, forMs / 2))
  socket.write(text.slice(text.length / 2), 'latin1')
  await new Promise((resolve) => setTimeout(resolve, forMs / 2))
  socket.destroy()
}
