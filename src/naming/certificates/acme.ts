/**
 * Orders certificates from an ACME server (RFC 8555) by DNS-01 challenges.
 *
 * Owns: the account, whose key is encrypted in the database, and the challenge records. Does not own: when to order.
 * Law: each order publishes and removes its own text. Others at the name are those of other ACME clients, or of another order.
 */
import { generateKeyPairSync } from 'node:crypto'
import acme from 'acme-client'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Keyring } from '#lib/keyring.ts'
import { getOrInsertSecret } from '#store/installation-secrets.ts'
import type { Db } from '#store/store.ts'
import { type DnsProvider, RecordsRejected, type TextRecord } from '../dns/provider.ts'
import { ServiceUnavailable, sendAcmeRequests } from './acme-requests.ts'
import { type Issued, type Issuer, OrderRejected } from './issuer.ts'
import { acmeLimits } from './limits.ts'

export type AcmeOptions = {
  readonly directoryUrl: string
  readonly email: string | null
  /** PEM: who may have signed the certificate of the ACME server. Undefined: those that Node trusts. */
  readonly ca: Buffer | undefined
  /** PEM. */
  readonly accountKey: string
  readonly dns: Pick<DnsProvider, 'setText' | 'settleSeconds'>
  readonly clock: Clock
}

/** Every process of the installation uses the same account. */
export function readAccountKey(db: Db, keyring: Keyring): Promise<string> {
  return getOrInsertSecret(db, keyring, 'acme-account-key', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  })
}

export class AcmeIssuer implements Issuer {
  readonly id: string
  readonly #options: AcmeOptions
  /** Challenges of orders that ended, which are not removed yet. */
  readonly #leftover = new Set<TextRecord>()

  constructor(options: AcmeOptions) {
    this.#options = options
    this.id = `acme ${options.directoryUrl}`
  }

  async issue(name: string, signal: AbortSignal): Promise<Issued> {
    const { directoryUrl, accountKey, ca } = this.#options
    signal.throwIfAborted()
    const key = await acme.crypto.createPrivateEcdsaKey()
    const [, csr] = await acme.crypto.createCsr({ altNames: [name] }, key)
    const client = new acme.Client({
      directoryUrl,
      accountKey,
      backoffAttempts: acmeLimits.pollAttempts,
      backoffMin: acmeLimits.pollMsMin,
      backoffMax: acmeLimits.pollMsMax,
    })
    sendAcmeRequests({ ca, signal })
    try {
      await this.#findOrCreateAccount(client)
      return { chain: await this.#order(client, csr, signal), key: key.toString() }
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof ServiceUnavailable || error instanceof OrderRejected) throw error
      throw new OrderRejected(`${directoryUrl} refused the order`, { cause: error })
    }
  }

  /** The library changes an account that exists, which servers refuse if there is nothing to change. */
  async #findOrCreateAccount(client: acme.Client): Promise<void> {
    const { email } = this.#options
    try {
      await client.createAccount({ onlyReturnExisting: true })
    } catch (error) {
      if (error instanceof ServiceUnavailable) throw error
      await client.createAccount({ termsOfServiceAgreed: true, ...(email === null ? {} : { contact: [`mailto:${email}`] }) })
    }
  }

  #order(client: acme.Client, csr: Buffer, signal: AbortSignal): Promise<string> {
    const { dns, clock } = this.#options
    return client.auto({
      csr,
      challengePriority: ['dns-01'],
      // It would ask the resolver of this machine, which may remember that there was no record.
      skipChallengeVerification: true,
      challengeCreateFn: async ({ identifier }, _challenge, text) => {
        await this.#publish(identifier.value, text, signal)
        await sleep(clock, dns.settleSeconds * 1000, signal)
        signal.throwIfAborted()
      },
      // A text that stays does no harm: the end of the next order removes it.
      challengeRemoveFn: ({ identifier }, _challenge, text) => this.#remove(toRecord(identifier.value, text)),
    })
  }

  async #remove(record: TextRecord): Promise<void> {
    this.#leftover.add(record)
    // Also if the order was aborted, because this process no longer leads.
    const signal = AbortSignal.timeout(acmeLimits.removalTimeoutMs)
    for (const each of this.#leftover) {
      await this.#options.dns.setText(each, false, signal)
      this.#leftover.delete(each)
    }
  }

  async #publish(domain: string, text: string, signal: AbortSignal): Promise<void> {
    const record = toRecord(domain, text)
    try {
      await this.#options.dns.setText(record, true, signal)
    } catch (cause) {
      const ProblemClass = cause instanceof RecordsRejected ? OrderRejected : ServiceUnavailable
      throw new ProblemClass(`the challenge ${record.name} cannot be published`, { cause })
    }
  }
}

function toRecord(domain: string, text: string): TextRecord {
  return { name: `_acme-challenge.${domain}`, text, ttl: acmeLimits.challengeTtlSeconds }
}
