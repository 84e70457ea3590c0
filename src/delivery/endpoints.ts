import type { Snapshot, SnapshotEndpoint } from '#model/snapshot.ts'

/** The endpoints of the newest snapshot. */
export class Endpoints {
  #byId: ReadonlyMap<string, SnapshotEndpoint> = new Map()
  #next = new AbortController()

  update({ endpoints }: Pick<Snapshot, 'endpoints'>): void {
    this.#byId = new Map(endpoints.map((endpoint) => [endpoint.id, endpoint]))
    this.#next.abort()
    this.#next = new AbortController()
  }

  find(id: string): SnapshotEndpoint | undefined {
    return this.#byId.get(id)
  }

  /** Aborts at the next update. */
  nextUpdate(): AbortSignal {
    return this.#next.signal
  }
}
