/**
 * Sends requests by a schedule that does not wait for responses, and measures each response from when its request should have been sent.
 *
 * A load generator that sends the next request only after the last response sends nothing while the server stalls, so a stall of 200 ms would
 * show in one request of each connection. Here it shows in every request that was due meanwhile (wrk2 corrects in the same way).
 */
import { setImmediate } from 'node:timers/promises'
import { connectAll, isAccepted } from './http-ingest-load.ts'

export type OpenLoop = {
  readonly url: string
  /** Each has one request in flight at most. Due requests wait for a free one. */
  readonly connections: number
  readonly request: Buffer
  /** The mean rate. Arrivals are a Poisson process, as of many clients that do not know each other. */
  readonly perSecond: number
  /** Requests that are due in this time are not measured. */
  readonly warmUpMs: number
  readonly measureMs: number
}

/** In milliseconds. */
export type Percentiles = { readonly p50: number; readonly p99: number; readonly p999: number; readonly max: number }

export type OpenLoopOutcome = {
  readonly requests: number
  readonly fromDue: Percentiles
  /** Percentiles that a load generator without the correction would report. */
  readonly fromSent: Percentiles
}

/** How long the last responses may take. */
const drainMs = 30_000

export async function runOpenLoop(load: OpenLoop): Promise<OpenLoopOutcome> {
  const { request, perSecond, warmUpMs, measureMs } = load
  const idle = await connectAll(load)
  const sockets = [...idle]
  const fromDue: number[] = []
  const fromSent: number[] = []
  const due: number[] = []
  const startedAt = performance.now()
  const measuredFrom = startedAt + warmUpMs
  const endsAt = measuredFrom + measureMs
  let next = startedAt
  let sent = 0
  let answered = 0

  const sendDue = () => {
    for (const now = performance.now(); next <= now && next < endsAt; next -= (Math.log(1 - Math.random()) * 1000) / perSecond)
      due.push(next)
    while (sent < due.length) {
      // The connection that was idle for longest, so that all are used.
      const socket = idle.shift()
      if (socket === undefined) return
      const dueAt = due[sent] ?? Number.NaN
      sent += 1
      const sentAt = performance.now()
      socket.once('data', (response) => {
        if (!isAccepted(response)) throw new Error(`unexpected response: ${response}`)
        const now = performance.now()
        answered += 1
        if (dueAt >= measuredFrom) {
          fromDue.push(now - dueAt)
          fromSent.push(now - sentAt)
        }
        idle.push(socket)
        sendDue()
      })
      socket.write(request)
    }
  }

  // A timer would be up to a millisecond late.
  for (; next < endsAt; await setImmediate()) sendDue()
  while (answered < due.length) {
    if (performance.now() > endsAt + drainMs) throw new Error(`${due.length - answered} requests without a response`)
    await setImmediate()
  }
  for (const socket of sockets) socket.destroy()
  return { requests: fromDue.length, fromDue: percentiles(fromDue), fromSent: percentiles(fromSent) }
}

export function percentiles(values: readonly number[]): Percentiles {
  const sorted = Float64Array.from(values).sort()
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1) }
}
