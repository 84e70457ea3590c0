import { randomBytes } from 'node:crypto'
import { AppError } from '#errors.ts'
import type { Keyring } from '#lib/keyring.ts'
import { newId } from '#model/id.ts'
import { secretLimits } from '#model/limits.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { bytesOfSecret, type CreateSecret, type RotateSecret, type Secret, type SetSecret } from '#model/secret.ts'
import { insertSecret, listSecrets, removeSecret, rotateSecret } from '#store/accounts/secrets.ts'
import { transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { actorOf, type Caller } from './actor.ts'

export type SecretsOptions = Pick<ControlContext, 'store' | 'applyChange' | 'clock' | 'logger'> & { readonly keyring: Keyring }

export type Secrets = ReturnType<typeof secretService>

/**
 * Secrets of an account, which views hash with.
 *
 * Law: a value leaves this service only to the store, and once to the caller if it was made here.
 */
export function secretService({ store, applyChange, keyring, clock, logger }: SecretsOptions) {
  return {
    async create(caller: Caller, { name, ...given }: CreateSecret): Promise<SetSecret> {
      const { account_id } = caller
      const { value, made } = readValue(given)
      const secret = { id: newId(), account_id, name, value }
      const created = await transact(store, (db) => insertSecret(db, keyring, secret, clock.now()))
      logger.info({ account_id, secret_id: secret.id, name, by: actorOf(caller) }, 'secret created')
      return { ...created, ...made }
    },

    list({ account_id }: Caller, page: PageQuery): Promise<Page<Secret>> {
      return listSecrets(store.db, account_id, page)
    },

    /** Nodes hash with the new value from the next segment that they convert. */
    async rotate(caller: Caller, id: string, given: RotateSecret): Promise<SetSecret> {
      const { account_id } = caller
      const { value, made } = readValue(given)
      const rotated = await applyChange((db) => rotateSecret(db, keyring, account_id, id, { value, now: clock.now() }))
      logger.info({ account_id, secret_id: id, name: rotated.name, by: actorOf(caller) }, 'secret rotated')
      return { ...rotated, ...made }
    },

    async remove(caller: Caller, id: string): Promise<void> {
      const { account_id } = caller
      await transact(store, (db) => removeSecret(db, account_id, id))
      logger.info({ account_id, secret_id: id, by: actorOf(caller) }, 'secret deleted')
    },
  }
}

/** Returns the value in base64, and the fields that return one that was made here. */
function readValue({ value, encoding }: RotateSecret): { readonly value: string; readonly made: Pick<SetSecret, 'value'> } {
  if (value === undefined) {
    const made = randomBytes(secretLimits.bytesMade).toString('base64')
    return { value: made, made: { value: made } }
  }
  const bytes = bytesOfSecret({ value, encoding })
  if (bytes === undefined) throw new AppError('validation_error', 'value: must be base64')
  return { value: bytes.toString('base64'), made: {} }
}
