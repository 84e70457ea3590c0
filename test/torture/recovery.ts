/**
 * How long the node needed after a fault: until it acknowledged a request that began after the end of the fault, and put a marker.
 *
 * Faults overlap, so the time also contains what other faults cost.
 */
import { statSync } from 'node:fs'
import { markerPaths } from './bucket-contents.ts'
import type { FaultKind } from './plan.ts'
import type { Rig } from './rig.ts'

const pollMs = 500

type Waiting = { readonly kind: FaultKind; readonly since: number; readonly sinceWall: number; isAcknowledged: boolean }

export class RecoveryWatch {
  /** Slowest recovery in milliseconds. */
  readonly slowest = new Map<FaultKind, number>()
  readonly #rig: Rig
  #waiting: readonly Waiting[] = []
  readonly #timer: NodeJS.Timeout

  constructor(rig: Rig) {
    this.#rig = rig
    rig.ledger.onAcknowledged = (_, startedAt) => {
      for (const waiting of this.#waiting) if (startedAt > waiting.since) waiting.isAcknowledged = true
    }
    this.#timer = setInterval(() => this.#poll(), pollMs)
  }

  /** The fault has ended. */
  begin(kind: FaultKind): void {
    this.#waiting = [...this.#waiting, { kind, since: performance.now(), sinceWall: Date.now(), isAcknowledged: false }]
  }

  /** Treats faults that have not recovered yet as recovered now. */
  stop(): void {
    clearInterval(this.#timer)
    for (const waiting of this.#waiting) this.#finish(waiting)
  }

  #poll(): void {
    const ready = this.#waiting.filter(({ isAcknowledged }) => isAcknowledged)
    if (ready.length === 0) return
    const newest = Math.max(...this.#rig.endpoints.flatMap(({ id }) => markerPaths(this.#rig.buckets, id).map(modifiedAt)), 0)
    for (const waiting of ready) if (newest > waiting.sinceWall) this.#finish(waiting)
    this.#waiting = this.#waiting.filter(({ isAcknowledged, sinceWall }) => !(isAcknowledged && newest > sinceWall))
  }

  #finish({ kind, since }: Waiting): void {
    this.slowest.set(kind, Math.max(performance.now() - since, this.slowest.get(kind) ?? 0))
  }
}

function modifiedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
