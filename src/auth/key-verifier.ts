import { AppError } from '#errors.ts'
import { apiKeyPattern, type Principal } from '#model/api-key.ts'
import type { SnapshotKey } from '#model/snapshot.ts'
import { hashApiKey } from './secrets.ts'

/**
 * Knows the keys of a snapshot by their hash.
 *
 * Law: after `update` a key that is not among the new ones is refused.
 */
export class KeyVerifier {
  #byHash: ReadonlyMap<string, Principal> = new Map()
  /** Secrets that were verified before. Only secrets of known keys are kept, so this never outgrows `#byHash`. */
  readonly #bySecret = new Map<string, Principal>()

  update(keys: readonly SnapshotKey[]): void {
    this.#byHash = new Map(keys.map(({ id, account_id, hash, scopes }) => [hash, { account_id, key_id: id, scopes }]))
    this.#bySecret.clear()
  }

  /** Throws unauthorized. A secret that was seen before costs one look into a map, a new one a hash. */
  verify(secret: string): Principal {
    const known = this.#bySecret.get(secret)
    if (known !== undefined) return known
    // The secret is never compared: its hash is looked up, and says nothing about the hash of a near miss.
    const principal = apiKeyPattern.test(secret) ? this.#byHash.get(hashApiKey(secret)) : undefined
    if (principal === undefined) throw new AppError('unauthorized', 'the API key is not valid')
    this.#bySecret.set(secret, principal)
    return principal
  }
}
