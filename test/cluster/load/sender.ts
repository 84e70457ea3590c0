/** Common part of the clients of the cluster: they repeat a request until it is acknowledged. */
import type { Ledger } from '../../torture/ledger.ts'
import type { Random } from '../../torture/random.ts'
import type { Named } from './name-cache.ts'
import type { Notices } from './notices.ts'

export type SenderOptions = {
  readonly ledger: Ledger
  readonly random: Random
  readonly apiKey: string
  readonly endpointId: string
  /** Name under which the endpoint is reached. */
  readonly ingestHost: string
  readonly port: number
  /** Addresses at which the region is reached now, in any order. */
  readonly resolve: () => Promise<Named>
  readonly waits: Waits
  readonly notices: Notices
  /** Root of the certificates that clients accept. */
  readonly ca: string
  /** How MQTT is carried. */
  readonly transport: 'mqtts' | 'wss'
}

export interface Sender {
  /** Stops when each request is acknowledged. Throws an error after a time in which that must have happened. */
  stop(): Promise<void>
}

export const stopMsMax = 60_000

/** How long clients waited for acknowledgements, repetitions included. */
export class Waits {
  readonly #done: { readonly endpointId: string; readonly startedAt: number; readonly ms: number }[] = []
  readonly #open = new Map<symbol, { readonly endpointId: string; readonly startedAt: number }>()

  /** Returns what to call when the request is acknowledged. */
  begin(endpointId: string): () => void {
    const id = Symbol()
    const startedAt = performance.now()
    this.#open.set(id, { endpointId, startedAt })
    return () => {
      this.#open.delete(id)
      this.#done.push({ endpointId, startedAt, ms: performance.now() - startedAt })
    }
  }

  /** Returns the longest wait among requests that began after `since`, or still wait. */
  longest(endpointId: string, since: number): number {
    const now = performance.now()
    const open = [...this.#open.values()].map((wait) => ({ ...wait, ms: now - Math.max(wait.startedAt, since) }))
    const done = this.#done.filter(({ startedAt }) => startedAt >= since)
    return Math.max(0, ...[...open, ...done].filter((wait) => wait.endpointId === endpointId).map(({ ms }) => ms))
  }
}
