import { systemFiles } from '#lib/files.ts'
import { isKeyList, Keyring, newSecretKey } from '#lib/keyring.ts'
import { readOrCreate, readTrimmed } from '#lib/read-or-create.ts'
import { UserError } from '#lib/user-error.ts'

export type SecretKeyOptions = {
  /** The configured keys; null to use the file. */
  readonly configured: string | null
  readonly path: string
  /** The key that something in the database is encrypted with; undefined if nothing is. Then a new key may be created. */
  readonly inUse: string | undefined
}

/** Returns the keys that encrypt the secrets in the database. The first start of control creates one. */
export async function openKeyring({ configured, path, inUse }: SecretKeyOptions): Promise<Keyring> {
  if (configured !== null) return new Keyring(configured, 'INLET_SECRET_KEY')
  // A new key would open nothing that is in the database, and would hide which one is missing.
  const list = inUse === undefined ? await readOrCreate(systemFiles, path, newSecretKey) : await readTrimmed(systemFiles, path)
  if (list === undefined) {
    throw new UserError(
      `the secrets in the database are encrypted with the key ${inUse}, and ${path} is missing: restore it, or set INLET_SECRET_KEY as on the other control processes; see "a lost secret key" in docs/operations.md`,
    )
  }
  if (!isKeyList(list)) throw new UserError(`${path} is not a list of keys of 32 bytes in base64, one in each line: restore it`)
  return new Keyring(list, path)
}
