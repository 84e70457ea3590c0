import type { BoundView } from '#model/snapshot.ts'
import type { Endpoints } from '../segments/endpoints.ts'

/** Watches the views of a conversion. Dispose it when the conversion has ended. */
export class Detachment implements Disposable {
  readonly #endpoints: Endpoints
  readonly #endpointId: string
  /** The bindings that were attached when the conversion began. */
  readonly #bindings: ReadonlySet<string>
  readonly #detached = new AbortController()
  #stop = (): void => undefined

  constructor(endpoints: Endpoints, endpointId: string, views: readonly BoundView[]) {
    this.#endpoints = endpoints
    this.#endpointId = endpointId
    this.#bindings = new Set(views.filter(({ deactivated_at }) => deactivated_at === null).map(({ binding_id }) => binding_id))
    this.#watch()
  }

  /** Aborts once one of the views is detached. */
  get signal(): AbortSignal {
    return this.#detached.signal
  }

  [Symbol.dispose](): void {
    this.#stop()
  }

  #watch(): void {
    const endpoint = this.#endpoints.find(this.#endpointId)
    const attached = new Set(
      endpoint?.views.flatMap(({ binding_id, deactivated_at }) => (deactivated_at === null ? binding_id : [])),
    )
    if (endpoint !== undefined && !this.#bindings.isSubsetOf(attached)) {
      this.#detached.abort()
      return
    }
    const updated = this.#endpoints.nextUpdate()
    const onUpdate = () => this.#watch()
    updated.addEventListener('abort', onUpdate, { once: true })
    this.#stop = () => updated.removeEventListener('abort', onUpdate)
  }
}
