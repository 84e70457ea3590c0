import { AppError } from '#errors.ts'
import type { Keyring } from '#lib/keyring.ts'
import type { IssuedCertificate } from '#model/node-protocol.ts'
import { findCertificate } from '#store/naming/certificates.ts'
import type { Store } from '#store/store.ts'

export type IssuedCertificatesOptions = {
  readonly store: Store
  readonly keyring: Keyring
  /** The name of the certificate for a region; undefined if control issues none. */
  readonly certificateName: ((region: string) => string) | undefined
}

export type IssuedCertificates = ReturnType<typeof issuedCertificates>

/** Hands certificates to nodes. */
export function issuedCertificates({ store, keyring, certificateName }: IssuedCertificatesOptions) {
  return {
    /** Throws not_found. */
    async forRegion(region: string): Promise<IssuedCertificate> {
      const name = certificateName?.(region)
      const found = name === undefined ? undefined : await findCertificate(store.db, keyring, name)
      if (found === undefined) throw new AppError('not_found', `control has no certificate for region ${region}`)
      return found
    },
  }
}
