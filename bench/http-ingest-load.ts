/**
 * A cheap load generator: raw sockets, one prepared request, one request in flight per connection.
 * `node http-ingest-load.ts`: receives a job as a message and sends its result as a message.
 */
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

function prepare({ events, eventBytes }: Job): Buffer {
  const event =
    '{"id":"0191f2c4-7d1e-7c3a-9b0e-5a6f1c2d3e4f","type":"page_view","at":"2026-11-20T08:15:30.123Z","value":12.5,"text":"'
  const line = `${event}${'x'.repeat(eventBytes - event.length - 3)}"}\n`
  const body = line.repeat(events)
  const head = `POST /v1/ingest HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: ${benchKey}\r\nContent-Type: application/x-ndjson\r\nContent-Length: ${body.length}\r\n\r\n`
  return Buffer.from(head + body)
}

async function run(job: Job, onStarted: () => void): Promise<Outcome> {
  const request = prepare(job)
  const { hostname, port } = new URL(job.url)
  let answers = 0
  let ending = false
  const sockets: Socket[] = []
  for (let n = 0; n < job.connections; n += 1) {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true })
    // A response fits into one packet and both servers write it at once, so a chunk is a response.
    socket.on('data', (chunk) => {
      if (chunk.toString('latin1', statusAt, statusAt + 3) !== '202') throw new Error(`unexpected response: ${chunk}`)
      answers += 1
      if (!ending) socket.write(request)
    })
    socket.on('error', (error) => {
      throw error
    })
    sockets.push(socket)
  }
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
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
