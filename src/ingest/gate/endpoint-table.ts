import type { KeyPrincipal } from '#model/principal.ts'
import type { Snapshot, SnapshotEndpoint } from '#model/snapshot.ts'
import { needsCopy } from './copied.ts'
import { gateLimits } from './limits.ts'
import { Rejection } from './rejection.ts'

/** Identifies the endpoint that a client sends to. */
export interface Route {
  /** The name by which the client reached this node, with or without a port. */
  readonly host: string | undefined
  /** `endpoint=<id>`, or empty. */
  readonly query: string
  /** The origin of the web page that the client is part of. */
  readonly origin?: string | undefined
}

/**
 * Finds the endpoint that a client sends to: by host, otherwise by the query's `endpoint`, otherwise the only endpoint that its key is for.
 * There is one table per snapshot.
 */
export class EndpointTable {
  readonly #region: string
  readonly #byId = new Map<string, SnapshotEndpoint>()
  readonly #byHost = new Map<string, SnapshotEndpoint>()
  /** `.<region>.<base domain>` of every known host. An unknown label under one of these is an unknown endpoint. */
  readonly #domains = new Set<string>()
  readonly #byAccount = new Map<string, SnapshotEndpoint[]>()
  readonly #suspendedAccounts = new Set<string>()

  constructor({ region, endpoints }: Pick<Snapshot, 'region' | 'endpoints'>) {
    this.#region = region
    for (const endpoint of endpoints) {
      this.#byId.set(endpoint.id, endpoint)
      if (endpoint.account_suspended) this.#suspendedAccounts.add(endpoint.account_id)
      const host = endpoint.ingest_host?.toLowerCase() ?? ''
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

  get(id: string): SnapshotEndpoint | undefined {
    return this.#byId.get(id)
  }

  /** Returns the ids of the endpoints that need a copy store. */
  copied(): readonly string[] {
    return [...this.#byId.values()].flatMap((endpoint) => (needsCopy(endpoint) ? endpoint.id : []))
  }

  /** Throws Rejection. An endpoint of another account is rejected like one that does not exist. Whether it accepts data is `requireAccepting`. */
  resolve(principal: KeyPrincipal, route: Route): SnapshotEndpoint {
    if (this.#suspendedAccounts.size > 0 && this.#suspendedAccounts.has(principal.account_id)) throw accountSuspended()
    const { host, query } = route
    const reached = this.#domains.size === 0 || host === undefined ? undefined : this.#atHost(host, principal)
    const named = query === '' ? undefined : this.#named(query, principal)
    if (reached !== undefined && named !== undefined && reached !== named) {
      throw invalid(`the host ${reached.ingest_host} names another endpoint than the query does; leave one of them out`)
    }
    const endpoint = reached ?? named ?? this.#only(principal)
    if (principal.endpoint_ids?.includes(endpoint.id) === false) throw notForKey(endpoint)
    return endpoint
  }

  /** Checks an endpoint that `resolve` of an earlier table returned, and returns it as it is now. Throws Rejection. */
  recheck(earlier: SnapshotEndpoint): SnapshotEndpoint {
    const endpoint = this.#byId.get(earlier.id)
    if (endpoint === earlier) return endpoint
    if (endpoint === undefined) throw deleted()
    if (endpoint.account_suspended) throw accountSuspended()
    requireAccepting(endpoint)
    return endpoint
  }

  #atHost(host: string, { account_id }: KeyPrincipal): SnapshotEndpoint | undefined {
    const known = this.#byHost.get(host)
    if (known?.account_id === account_id) return known
    const name = host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
    const endpoint = this.#byHost.get(name)
    if (endpoint?.account_id === account_id) return endpoint
    if (!this.#domains.has(name.slice(name.indexOf('.')))) return undefined
    throw new Rejection(
      'unknown_endpoint',
      `the account of the key has no endpoint with the host ${name}; see ingest_host of its endpoints`,
    )
  }

  #named(query: string, { account_id }: KeyPrincipal): SnapshotEndpoint {
    const parameters = new URLSearchParams(query)
    for (const name of parameters.keys()) {
      if (name !== 'endpoint') throw invalid(`unknown query parameter "${name}"; the only one is endpoint`, name)
    }
    const [id, ...more] = parameters.getAll('endpoint')
    if (id === undefined || more.length > 0) throw invalid('name one endpoint in the query: ?endpoint=<its id>')
    const endpoint = this.#byId.get(id.toLowerCase())
    if (endpoint?.account_id === account_id) return endpoint
    throw new Rejection('unknown_endpoint', `the account of the key has no endpoint ${id} in region ${this.#region}`)
  }

  #only({ account_id, endpoint_ids }: KeyPrincipal): SnapshotEndpoint {
    const all = this.#byAccount.get(account_id) ?? []
    const own = endpoint_ids === null ? all : all.filter(({ id }) => endpoint_ids.includes(id))
    const [first] = own
    if (first !== undefined && own.length === 1) return first
    if (first === undefined && all.length > 0) {
      throw invalid(`the key is for no endpoint in region ${this.#region}; send to the region of its endpoints`)
    }
    if (first === undefined) {
      throw invalid(`the key's account has no endpoint in region ${this.#region}; create one with POST /v1/endpoints`)
    }
    const choice = own.slice(0, 5).map(({ id }) => id)
    const more = own.length > choice.length ? ', …' : ''
    throw invalid(
      `the key is for ${own.length} endpoints in region ${this.#region}: name one with ?endpoint=<id> (${choice.join(', ')}${more})`,
    )
  }
}

/** Throws Rejection unless the owner wants the endpoint to accept data. */
export function requireAccepting({ desired_state }: SnapshotEndpoint): void {
  switch (desired_state) {
    case 'active':
      return
    case 'paused':
      throw new Rejection('endpoint_paused', 'the endpoint is paused; resume it, then send again', {
        retryAfterSeconds: gateLimits.retryPausedSeconds,
      })
    case 'draining':
      throw deleted()
  }
}

function notForKey({ id }: SnapshotEndpoint): Rejection {
  return new Rejection('forbidden', `the key is not for the endpoint ${id}; send to one that it is for, or use another key`)
}

function deleted(): Rejection {
  return new Rejection('unknown_endpoint', 'the endpoint is being deleted and accepts no more data')
}

function accountSuspended(): Rejection {
  return new Rejection('account_suspended', 'the account of the key is suspended; ask the operator of this installation')
}

function invalid(message: string, field = 'endpoint'): Rejection {
  return new Rejection('invalid_route', message, { field })
}
