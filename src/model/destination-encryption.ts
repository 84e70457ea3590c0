/** Settles encryption and key, of which a client may give either. */
import { AppError } from '#errors.ts'
import type { ChangeDestination, Encryption } from './destination.ts'

type Encrypting = { readonly encryption: Encryption; readonly kms_key_arn: string | null }

/** A new destination, before its settings. */
export const defaultEncryption: Encrypting = { encryption: 'sse-s3', kms_key_arn: null }

/** Returns both as they are after a change: a key implies `kms`, and no other encryption has one. Throws validation_error. */
export function encryptionAfter(
  before: Encrypting,
  { encryption, kms_key_arn }: Pick<ChangeDestination, 'encryption' | 'kms_key_arn'>,
): Encrypting {
  if (encryption === undefined) {
    if (kms_key_arn === undefined) return before
    if (kms_key_arn !== null) return { encryption: 'kms', kms_key_arn }
    return before.encryption === 'kms' ? defaultEncryption : before
  }
  if (encryption !== 'kms') {
    if (kms_key_arn != null)
      throw invalid('kms_key_arn', `must be null: the encryption is ${encryption}, which has no key of its own`)
    return { encryption, kms_key_arn: null }
  }
  const key = kms_key_arn === undefined ? before.kms_key_arn : kms_key_arn
  if (key === null) throw invalid('kms_key_arn', 'must be the ARN of a KMS key, because the encryption is kms')
  return { encryption, kms_key_arn: key }
}

function invalid(path: string, message: string): AppError {
  return new AppError('validation_error', `${path} ${message}`, { errors: [{ path, message }] })
}
