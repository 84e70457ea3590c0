/**
 * Encrypts small secrets for storage, with AES-256-GCM (NIST SP 800-38D).
 *
 * Owns: the form of an encrypted secret, and which key encrypts. Does not own: where keys and secrets are kept.
 * Law: a secret opens only with its key and at its place, so that it cannot be changed or moved to another row.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { UserError } from './user-error.ts'

const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

/** `key_id` names the key that encrypted `text`. */
export type Sealed = { readonly key_id: string; readonly text: string }

/** Keys are in base64, separated by commas or lines. */
const partsOf = (list: string): readonly string[] => list.split(/[\s,]+/).filter((part) => part !== '')

/** Whether the text is a list of keys of 32 bytes. */
export function isKeyList(list: string): boolean {
  const parts = partsOf(list)
  return parts.length > 0 && parts.every((part) => /^[\w+/-]{43}=?$/.test(part))
}

export function newSecretKey(): string {
  return randomBytes(keyBytes).toString('base64')
}

export class Keyring {
  /** By id, the one that encrypts first. */
  readonly #keys: ReadonlyMap<string, Buffer>
  /** Where the keys were read from, for messages. */
  readonly #source: string

  /** `list` is a list as of `isKeyList`. */
  constructor(list: string, source: string) {
    const keys = partsOf(list).map((part) => Buffer.from(part, 'base64'))
    this.#keys = new Map(keys.map((key) => [derive(key, 'id').toString('hex').slice(0, 8), derive(key, 'encryption')]))
    this.#source = source
  }

  /** The id of the key that encrypts. */
  get keyId(): string {
    return this.#encrypting[0]
  }

  /** `place` is where the secret is stored: `open` needs the same. */
  seal(secret: string, place: string): Sealed {
    const [key_id, key] = this.#encrypting
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(place))
    const text = Buffer.concat([nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return { key_id, text: text.toString('base64url') }
  }

  /** Throws UserError, which says what to do. */
  open({ key_id, text }: Sealed, place: string): string {
    const key = this.#keys.get(key_id)
    if (key === undefined) {
      throw new UserError(
        `${place} in the database is encrypted with the key ${key_id}, and ${this.#source} has ${[...this.#keys.keys()].join(', ')}: add that key after a comma, or see "a lost secret key" in docs/operations.md`,
      )
    }
    const bytes = Buffer.from(text, 'base64url')
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
      decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(-tagBytes))
      return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
    } catch (error) {
      throw new UserError(`${place} in the database was changed since it was encrypted: restore a backup, or remove this row`, {
        cause: error,
      })
    }
  }

  get #encrypting(): readonly [string, Buffer] {
    const [first] = this.#keys
    if (first === undefined) throw new RangeError('a keyring has at least one key')
    return first
  }
}

/** The key itself is used for nothing, so that neither its id nor a later use says anything about the encryption (RFC 5869). */
function derive(key: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `inlet secret key: ${purpose}`, keyBytes))
}
