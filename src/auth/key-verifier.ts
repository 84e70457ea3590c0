import { AppError } from '#errors.ts'
import { apiKeyPattern } from '#model/patterns.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import type { SnapshotKey } from '#model/snapshot.ts'
import { hashApiKey } from './secrets.ts'

const unknown = 'the API key is unknown or revoked, or its account has no endpoint in this region'

/**
 * Verifies API keys against the hashes in a snapshot.
 *
 * Law: after `update` only the keys passed to it are accepted.
 */
export class KeyVerifier {
  #keys: readonly SnapshotKey[] = []
  #byHash: ReadonlyMap<string, KeyPrincipal> = new Map()
  /** By id. */
  #names: ReadonlyMap<string, string | undefined> = new Map()
  /** Cache of verified secrets. It has only secrets of known keys, so it never outgrows `#byHash`. */
  readonly #bySecret = new Map<string, KeyPrincipal>()
  readonly #refuseUnknown: (detail: string) => Error

  /** `refuseUnknown` makes the error for a well-formed key that is not among the keys. */
  constructor(refuseUnknown = (detail: string): Error => new AppError('unauthorized', detail)) {
    this.#refuseUnknown = refuseUnknown
  }

  update(keys: readonly SnapshotKey[]): void {
    // The feed passes the same array while no key changes.
    if (keys === this.#keys) return
    this.#keys = keys
    this.#byHash = new Map(keys.map(({ id, hash, name: _, ...key }) => [hash, { key_id: id, ...key }]))
    this.#names = new Map(keys.map(({ id, name }) => [id, name]))
    this.#bySecret.clear()
  }

  /** Whether a key that was verified before is still accepted. */
  isActive(id: string): boolean {
    return this.#names.has(id)
  }

  /** Returns the name of a key that is accepted; undefined if the node does not know it. */
  nameOf(id: string): string | undefined {
    return this.#names.get(id)
  }

  /** Throws unauthorized, or what `refuseUnknown` returns. A cached secret costs one map lookup, a new one a hash. */
  verify(secret: string): KeyPrincipal {
    const known = this.#bySecret.get(secret)
    if (known !== undefined) return known
    // Looks up the hash instead of comparing the secret, so timing reveals nothing about similar secrets.
    if (!apiKeyPattern.test(secret)) throw new AppError('unauthorized', unknown)
    const principal = this.#byHash.get(hashApiKey(secret))
    if (principal === undefined) throw this.#refuseUnknown(unknown)
    this.#bySecret.set(secret, principal)
    return principal
  }
}
