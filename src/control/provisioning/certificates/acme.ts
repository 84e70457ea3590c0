/**
 * Orders certificates from an ACME server (RFC 8555) by DNS-01 challenges.
 *
 * Owns: the account, whose key is encrypted in the database, and the challenge records. Does not own: when to order.
 * Law: one order at a time, because orders for one name share its challenge record.
 */
import { generateKeyPairSync } from 'node:crypto'
import acme from 'acme-client'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Keyring } from '#lib/keyring.ts'
import { getOrInsertSecret } from '#store/secrets.ts'
import type { Db } from '#store/store.ts'
import { type DnsProvider, RecordsRejected } from '../dns/provider.ts'
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
  readonly dns: Pick<DnsProvider, 'apply' | 'settleSeconds'>
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
        await this.#publish(identifier.value, [text], signal)
        await sleep(clock, dns.settleSeconds * 1000, signal)
        signal.throwIfAborted()
      },
      // A record that stays does no harm: the next order replaces it.
      challengeRemoveFn: ({ identifier }) => this.#publish(identifier.value, [], signal),
    })
  }

  async #publish(domain: string, values: readonly string[], signal: AbortSignal): Promise<void> {
    const name = `_acme-challenge.${domain}`
    try {
      await this.#options.dns.apply([{ name, type: 'TXT', values, ttl: acmeLimits.challengeTtlSeconds }], signal)
    } catch (cause) {
      const ProblemClass = cause instanceof RecordsRejected ? OrderRejected : ServiceUnavailable
      throw new ProblemClass(`the challenge ${name} cannot be published`, { cause })
    }
  }
}
