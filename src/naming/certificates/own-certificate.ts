/**
 * The issued certificate that the listeners of control serve.
 *
 * Owns: reading it again when the configuration changes. Does not own: its order (renewals.ts).
 */
import { errorMessage } from '#lib/error-message.ts'
import type { Keyring } from '#lib/keyring.ts'
import { ServedCertificate } from '#lib/served-certificate.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { EpochFeed } from '#store/cluster/epoch-feed.ts'
import { findCertificate, findFingerprint } from '#store/naming/certificates.ts'
import type { Store } from '#store/store.ts'

export type OwnCertificateOptions = {
  readonly store: Store
  readonly keyring: Keyring
  readonly host: string
  readonly feed: Pick<EpochFeed, 'subscribe'>
  readonly logger: Logger
}

export class OwnCertificate extends ServedCertificate implements Service {
  readonly name = 'own certificate'
  readonly #options: OwnCertificateOptions
  #fingerprint: string | null = null

  constructor(options: OwnCertificateOptions) {
    super()
    this.#options = options
  }

  /** Must start before the feed, whose first epoch loads the certificate. */
  async start(): Promise<void> {
    this.#options.feed.subscribe(() => this.#load())
    await this.#load()
  }

  async stop(): Promise<void> {
    // It runs only when the feed calls it.
  }

  async #load(): Promise<void> {
    const { store, keyring, host, logger } = this.#options
    const fingerprint = await findFingerprint(store.db, host)
    if (fingerprint === null || fingerprint === this.#fingerprint) return
    try {
      const found = await findCertificate(store.db, keyring, host)
      if (found === undefined) return
      this.replace(Buffer.from(found.chain), Buffer.from(found.key))
      this.#fingerprint = found.fingerprint
      logger.info({ host }, 'TLS certificate loaded')
    } catch (error) {
      // Others wait for the feed, too. The next change tries again.
      logger.error({ host, reason: errorMessage(error) }, 'TLS certificate cannot be loaded; the previous one is still served')
    }
  }
}
