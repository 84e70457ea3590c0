import { AppError } from '#errors.ts'
import type { Principal } from '#model/api-key.ts'
import type { Snapshot, SnapshotEndpoint } from '#model/snapshot.ts'

const retryPausedSeconds = 30

/**
 * Says which endpoint a request is for: by its host, else by the query's `endpoint`, else the only one that its account has.
 * One table per snapshot.
 */
export class EndpointTable {
  readonly #region: string
  readonly #byId = new Map<string, SnapshotEndpoint>()
  readonly #byHost = new Map<string, SnapshotEndpoint>()
  /** `.<region>.<base domain>` of every known host: another label under one of these names no endpoint. */
  readonly #domains = new Set<string>()
  readonly #byAccount = new Map<string, SnapshotEndpoint[]>()

  constructor({ region, endpoints }: Pick<Snapshot, 'region' | 'endpoints'>) {
    this.#region = region
    for (const endpoint of endpoints) {
      this.#byId.set(endpoint.id, endpoint)
      const host = endpoint.ingest_host.toLowerCase()
      const domain = host.slice(host.indexOf('.'))
      if (domain.startsWith(`.${region}.`)) {
        this.#byHost.set(host, endpoint)
        this.#domains.add(domain)
      }
      if (endpoint.desired_state === 'draining') continue
      const others = this.#byAccount.get(endpoint.account_id)
      if (others === undefined) this.#byAccount.set(endpoint.account_id, [endpoint])
      else others.push(endpoint)
    }
  }

  /** `query` is what follows the `?`, or empty. Throws AppError not_found, forbidden, validation_error or unavailable. */
  resolve(principal: Principal, host: string | undefined, query: string): SnapshotEndpoint {
    const reached = this.#domains.size === 0 || host === undefined ? undefined : this.#atHost(host)
    const named = query === '' ? undefined : this.#named(query)
    if (reached !== undefined && named !== undefined && reached !== named) {
      throw invalid(`the host ${reached.ingest_host} is another endpoint than the query's; leave one of them out`)
    }
    const endpoint = reached ?? named ?? this.#only(principal)
    if (endpoint.account_id !== principal.account_id) {
      throw new AppError('forbidden', 'the endpoint belongs to another account than the key; send with a key of its account')
    }
    switch (endpoint.desired_state) {
      case 'active':
        return endpoint
      case 'paused':
        throw new AppError('unavailable', 'the endpoint is paused; resume it, then send again', {
          retryAfterSeconds: retryPausedSeconds,
        })
      case 'draining':
        throw new AppError('not_found', 'the endpoint is being deleted and takes nothing more')
    }
  }

  #atHost(host: string): SnapshotEndpoint | undefined {
    const known = this.#byHost.get(host)
    if (known !== undefined) return known
    const name = host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
    const endpoint = this.#byHost.get(name)
    if (endpoint === undefined && this.#domains.has(name.slice(name.indexOf('.')))) {
      throw new AppError('not_found', `no endpoint has the host ${name}; see ingest_host of your endpoints`)
    }
    return endpoint
  }

  #named(query: string): SnapshotEndpoint {
    const parameters = new URLSearchParams(query)
    for (const name of parameters.keys()) {
      if (name !== 'endpoint') throw invalid(`the query has a parameter "${name}"; only endpoint is known`, name)
    }
    const [id, ...more] = parameters.getAll('endpoint')
    if (id === undefined || more.length > 0) throw invalid('name one endpoint in the query: ?endpoint=<its id>')
    const endpoint = this.#byId.get(id.toLowerCase())
    if (endpoint !== undefined) return endpoint
    throw new AppError('not_found', `region ${this.#region} has no endpoint ${id}`)
  }

  #only({ account_id }: Principal): SnapshotEndpoint {
    const own = this.#byAccount.get(account_id) ?? []
    const [first] = own
    if (first !== undefined && own.length === 1) return first
    if (first === undefined) {
      throw invalid(`the key's account has no endpoint in region ${this.#region}; create one with POST /v1/endpoints`)
    }
    const choice = own.slice(0, 5).map(({ id }) => id)
    const more = own.length > choice.length ? ', …' : ''
    throw invalid(
      `the key's account has ${own.length} endpoints in region ${this.#region}: name one with ?endpoint=<id> (${choice.join(', ')}${more})`,
    )
  }
}

function invalid(message: string, path = 'endpoint'): AppError {
  return new AppError('validation_error', message, { errors: [{ path, message }] })
}
