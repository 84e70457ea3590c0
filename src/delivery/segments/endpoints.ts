import type { DatabasePosition } from '#model/database-position.ts'
import type { AssignableDestination } from '#model/destination.ts'
import { copiesDefault } from '#model/endpoint.ts'
import { segmentLimits } from '#model/limits.ts'
import { effectiveQuotas } from '#model/quota.ts'
import type { Snapshot, SnapshotEndpoint } from '#model/snapshot.ts'

/** The endpoints of the newest snapshot, and the logs that the operator assigned to a destination. */
export class Endpoints {
  #byId: ReadonlyMap<string, SnapshotEndpoint> = new Map()
  #assigned: ReadonlyMap<string, AssignableDestination> = new Map()
  #next = new AbortController()
  #epoch = -1
  #position: DatabasePosition | undefined

  /** The epoch of the snapshot; -1 before the first. */
  get epoch(): number {
    return this.#epoch
  }

  /** State of the database that the snapshot is from, if control reported it. */
  get position(): DatabasePosition | undefined {
    return this.#position
  }

  update({ endpoints, epoch, position }: Pick<Snapshot, 'endpoints' | 'epoch' | 'position'>): void {
    this.#epoch = epoch
    this.#position = position
    this.#byId = new Map(endpoints.map((endpoint) => [endpoint.id, endpoint]))
    this.#endWaits()
  }

  /** Replaces the assignments, by log. */
  assign(assigned: ReadonlyMap<string, AssignableDestination>): void {
    const isSame = JSON.stringify([...assigned]) === JSON.stringify([...this.#assigned])
    this.#assigned = assigned
    if (!isSame) this.#endWaits()
  }

  /** Returns the endpoint of a log. A log without a destination of its own has the one that it is assigned to. */
  find(id: string): SnapshotEndpoint | undefined {
    const endpoint = this.#byId.get(id)
    if (endpoint !== undefined && endpoint.destination !== null) return endpoint
    const { destination, account_id } = this.#assigned.get(id) ?? {}
    if (destination === undefined || account_id === undefined) return endpoint
    return { ...(endpoint ?? { ...unowned, id, account_id }), destination }
  }

  /** Returns the ids of endpoints that are being deleted. */
  listDraining(): readonly string[] {
    return [...this.#byId.values()].filter(({ desired_state }) => desired_state === 'draining').map(({ id }) => id)
  }

  /** Aborts at the next update. */
  nextUpdate(): AbortSignal {
    return this.#next.signal
  }

  /** Watches for a condition. The signal aborts once an update makes it true, or at once. Dispose it when nobody waits for it. */
  when(isTrue: () => boolean): Disposable & { readonly signal: AbortSignal } {
    const met = new AbortController()
    let stop = (): void => undefined
    const watch = (): void => {
      const updated = this.nextUpdate()
      stop = () => updated.removeEventListener('abort', watch)
      if (isTrue()) met.abort()
      else updated.addEventListener('abort', watch, { once: true })
    }
    watch()
    return { signal: met.signal, [Symbol.dispose]: () => stop() }
  }

  #endWaits(): void {
    const ended = this.#next
    // Replaced first: a listener may wait for the next update.
    this.#next = new AbortController()
    ended.abort()
  }
}

/** Stands for an endpoint that this node has no configuration of: its records are kept as they are. */
const unowned = {
  ingest_host: null,
  account_suspended: false,
  account_weight: 1,
  account_quotas: effectiveQuotas({}),
  desired_state: 'draining' as const,
  segment_bytes: segmentLimits.bytesDefault,
  segment_max_age_seconds: segmentLimits.maxAgeSecondsDefault,
  output_formats: ['segments', 'parquet'] as SnapshotEndpoint['output_formats'],
  mqtt_config: null,
  kept_headers: [],
  kept_fields: [],
  copies: copiesDefault,
  views: [],
  committed_seq: -1,
}
