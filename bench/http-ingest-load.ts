/**
 * A cheap load generator: raw sockets, one prepared request, one request in flight per connection.
 * `node http-ingest-load.ts`: receives a job as a message and sends its result as a message.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { benchKey } from './inlet-node.ts'

export type Job = {
  readonly url: string
  readonly connections: number
  readonly events: number
  readonly eventBytes: number
  readonly warmUpMs: number
  readonly measureMs: number
}
export type Outcome = { readonly requests: number; readonly seconds: number }
/** Sent at the end of the warm-up, and at the end of the measurement. */
export type LoadMessage = { readonly started: true } | { readonly outcome: Outcome }

const statusAt = 'HTTP/1.1 '.length

/** A response fits into one packet and the servers write it at once, so a chunk is a response. */
export function isAccepted(chunk: Buffer | string): boolean {
  return typeof chunk !== 'string' && chunk.toString('latin1', statusAt, statusAt + 3) === '202'
}

export function prepare({ events, eventBytes }: Pick<Job, 'events' | 'eventBytes'>): Buffer {
  const event =
    '{"id":"0191f2c4-7d1e-7c3a-9b0e-5a6f1c2d3e4f","type":"page_view","at":"2026-11-20T08:15:30.123Z","value":12.5,"text":"'
  const line = `${event}${'x'.repeat(eventBytes - event.length - 3)}"}\n`
  const body = line.repeat(events)
  const head = `POST /v1/ingest HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: ${benchKey}\r\nContent-Type: application/x-ndjson\r\nContent-Length: ${body.length}\r\n\r\n`
  return Buffer.from(head + body)
}

/** Returns open connections. One that fails ends the process. */
export async function connectAll({ url, connections }: Pick<Job, 'url' | 'connections'>): Promise<Socket[]> {
  const { hostname, port } = new URL(url)
  const sockets = Array.from({ length: connections }, () => connect({ host: hostname, port: Number(port), noDelay: true }))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  for (const socket of sockets) {
    socket.on('error', (error) => {
      throw error
    })
  }
  return sockets
}

async function run(job: Job, onStarted: () => void): Promise<Outcome> {
  const request = prepare(job)
  let answers = 0
  let ending = false
  const sockets = await connectAll(job)
  for (const socket of sockets) {
    socket.on('data', (chunk) => {
      if (!isAccepted(chunk)) throw new Error(`unexpected response: ${chunk}`)
      answers += 1
      if (!ending) socket.write(request)
    })
  }
  for (const socket of sockets) socket.write(request)
  await new Promise((resolve) => setTimeout(resolve, job.warmUpMs))
  onStarted()
  const [before, start] = [answers, performance.now()]
  await new Promise((resolve) => setTimeout(resolve, job.measureMs))
  const outcome = { requests: answers - before, seconds: (performance.now() - start) / 1000 }
  ending = true
  for (const socket of sockets) socket.destroy()
  return outcome
}

if (import.meta.main) {
  const tell = (message: LoadMessage) => process.send?.(message)
  process.on('message', async (job: Job) => tell({ outcome: await run(job, () => tell({ started: true })) }))
}
