import { AppError } from '#errors.ts'
import { apiKeyPattern, type Principal } from '#model/api-key.ts'
import type { SnapshotKey } from '#model/snapshot.ts'
import { hashApiKey } from './secrets.ts'

/**
 * Verifies API keys against the hashes in a snapshot.
 *
 * Law: after `update` a key that is not among the new ones is rejected.
 */
export class KeyVerifier {
  #keys: readonly SnapshotKey[] = []
  #byHash: ReadonlyMap<string, Principal> = new Map()
  /** Secrets that were verified before. Only secrets of known keys are kept, so this never outgrows `#byHash`. */
  readonly #bySecret = new Map<string, Principal>()

  update(keys: readonly SnapshotKey[]): void {
    // The feed keeps the array for as long as no key changes.
    if (keys === this.#keys) return
    this.#keys = keys
    this.#byHash = new Map(keys.map(({ id, account_id, hash, scopes }) => [hash, { account_id, key_id: id, scopes }]))
    this.#bySecret.clear()
  }

  /** Throws unauthorized. A cached secret costs one map lookup, a new one a hash. */
  verify(secret: string): Principal {
    const known = this.#bySecret.get(secret)
    if (known !== undefined) return known
    // The secret is never compared: its hash is looked up, and reveals nothing about similar secrets.
    const principal = apiKeyPattern.test(secret) ? this.#byHash.get(hashApiKey(secret)) : undefined
    if (principal === undefined) throw new AppError('unauthorized', 'the API key is not valid')
    this.#bySecret.set(secret, principal)
    return principal
  }
}
