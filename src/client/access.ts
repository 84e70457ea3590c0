/**
 * Access tokens of an API key.
 *
 * Owns: which token opens an operation, when it is exchanged, how long it is used.
 */
import { ApiError } from './errors.ts'
import type { components } from './generated/schema.ts'

type Scope = components['schemas']['ExchangeToken']['scope']
export type AccessToken = components['schemas']['AccessToken']

/** Scopes of tokens that open an operation, by its `x-scope`. Most keys that manage have `admin`: one token then opens everything. */
const sufficient = {
  admin: ['admin'],
  metrics: ['admin', 'metrics'],
  query: ['admin', 'query'],
  any: ['admin', 'query', 'metrics', 'ingest'],
} as const satisfies Record<string, readonly Scope[]>

export type TokenScope = keyof typeof sufficient

/** A token is not used in the last moments of its life: it could expire on its way. */
const marginSeconds = 30

type Held = { readonly token: string; readonly expiresAt: number }

export class Access {
  readonly #exchange: (scope: Scope) => Promise<AccessToken>
  readonly #held = new Map<Scope, Promise<Held>>()
  readonly #refused = new Map<Scope, ApiError>()

  constructor(exchange: (scope: Scope) => Promise<AccessToken>) {
    this.#exchange = exchange
  }

  /** Returns a token that opens operations of this scope. Throws the refusal of the exchange if the key has none. */
  async tokenFor(scope: TokenScope): Promise<string> {
    let refusal: ApiError | undefined
    for (const candidate of sufficient[scope]) {
      refusal = this.#refused.get(candidate)
      if (refusal !== undefined) continue
      try {
        return (await this.#tokenOf(candidate)).token
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 'forbidden') throw error
        // The scopes of a key never change.
        this.#refused.set(candidate, error)
        refusal = error
      }
    }
    throw refusal
  }

  /** The server rejected this token. */
  async forget(token: string): Promise<void> {
    for (const [scope, held] of this.#held) {
      const current = await held.catch(() => undefined)
      if (current?.token === token) this.#held.delete(scope)
    }
  }

  async #tokenOf(scope: Scope): Promise<Held> {
    const held = this.#held.get(scope)
    if (held !== undefined) {
      const current = await held
      if (performance.now() < current.expiresAt) return current
      // Others that wait for the same token may have replaced it already.
      if (this.#held.get(scope) !== held) return this.#tokenOf(scope)
    }
    const next = this.#exchange(scope).then(({ access_token, expires_in }) => ({
      token: access_token,
      expiresAt: performance.now() + Math.max(1, expires_in - marginSeconds) * 1000,
    }))
    this.#held.set(scope, next)
    next.catch(() => this.#held.get(scope) === next && this.#held.delete(scope))
    return next
  }
}
