/**
 * Counts what each endpoint accepted and refused since the last read.
 *
 * Owns: one set of counters per endpoint. Does not own: what control learns (series-report.ts).
 * Law: a request costs a few additions. Nothing is allocated but at the first request of an endpoint.
 */
import { binOf, durationBins } from '#lib/duration-histogram.ts'
import type { IngestCounts } from '#model/series.ts'

export class EndpointCounters {
  #records = 0
  #bytes = 0
  #requests = 0
  readonly #refused = new Map<string, number>()
  /** Requests by how long it took to acknowledge them. */
  readonly #bins = new Uint32Array(durationBins)

  /** Counts requests that became durable together, `afterMs` after they were complete. */
  accepted(requests: number, records: number, bytes: number, afterMs: number): void {
    this.#requests += requests
    this.#records += records
    this.#bytes += bytes
    const bin = binOf(afterMs)
    this.#bins[bin] = (this.#bins[bin] ?? 0) + requests
  }

  /** `reason` is an outcome of the gate, or the code of an error. */
  refused(reason: string, requests = 1): void {
    this.#refused.set(reason, (this.#refused.get(reason) ?? 0) + requests)
  }

  /** Returns what was counted since the last call; undefined if that is nothing. */
  take(): IngestCounts | undefined {
    if (this.#requests === 0 && this.#refused.size === 0) return undefined
    const acknowledged_after: Record<string, number> = {}
    for (const [bin, count] of this.#bins.entries()) if (count > 0) acknowledged_after[bin] = count
    const counts = {
      records: this.#records,
      bytes: this.#bytes,
      requests: this.#requests,
      refused: Object.fromEntries(this.#refused),
      acknowledged_after,
    }
    this.#records = this.#bytes = this.#requests = 0
    this.#refused.clear()
    this.#bins.fill(0)
    return counts
  }
}

/** Counters by endpoint id. */
export class EndpointCounts {
  readonly #byId = new Map<string, EndpointCounters>()

  /** Do not keep the result: counters of endpoints that do nothing are removed. */
  of(endpointId: string): EndpointCounters {
    const known = this.#byId.get(endpointId)
    if (known !== undefined) return known
    const counters = new EndpointCounters()
    this.#byId.set(endpointId, counters)
    return counters
  }

  /** Returns what endpoints counted since the last call. */
  takeAll(): readonly (readonly [endpointId: string, counts: IngestCounts])[] {
    return [...this.#byId].flatMap(([endpointId, counters]) => {
      const counts = counters.take()
      if (counts !== undefined) return [[endpointId, counts] as const]
      this.#byId.delete(endpointId)
      return []
    })
  }
}
