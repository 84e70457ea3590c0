import type { Snapshot, SnapshotEndpoint } from '#model/snapshot.ts'

/** The endpoints of the newest snapshot. */
export class Endpoints {
  #byId: ReadonlyMap<string, SnapshotEndpoint> = new Map()
  #next = new AbortController()
  #epoch = -1

  /** The epoch of the snapshot; -1 before the first. */
  get epoch(): number {
    return this.#epoch
  }

  update({ endpoints, epoch }: Pick<Snapshot, 'endpoints' | 'epoch'>): void {
    this.#epoch = epoch
    this.#byId = new Map(endpoints.map((endpoint) => [endpoint.id, endpoint]))
    this.#next.abort()
    this.#next = new AbortController()
  }

  find(id: string): SnapshotEndpoint | undefined {
    return this.#byId.get(id)
  }

  /** Returns the ids of endpoints that are being deleted. */
  listDraining(): readonly string[] {
    return [...this.#byId.values()].filter(({ desired_state }) => desired_state === 'draining').map(({ id }) => id)
  }

  /** Aborts at the next update. */
  nextUpdate(): AbortSignal {
    return this.#next.signal
  }
}
