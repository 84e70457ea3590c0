/**
 * Orders certificates and renews them.
 *
 * Owns: which names have one, and when one is ordered. Does not own: how (the issuer), who serves it.
 * Law: only the leader orders. A failed order changes nothing about the certificate in use, and the state of each is in the database, so that
 * another leader continues with the same pauses.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Keyring } from '#lib/keyring.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { ApplyChange } from '#store/cluster/changes.ts'
import type { Leadership } from '#store/cluster/leadership.ts'
import {
  type CertificateState,
  listCertificates,
  recordCertificate,
  recordOrderFailure,
  removeCertificate,
} from '#store/naming/certificates.ts'
import { listNodeRegions } from '#store/nodes/nodes.ts'
import { type Store, transact } from '#store/store.ts'
import { type Issuer, OrderRejected, wildcardOf } from './issuer.ts'
import { certificateLimits } from './limits.ts'
import { isDue, renewalTime, retryDelayMs } from './schedule.ts'

export type RenewalOptions = {
  readonly store: Store
  readonly keyring: Keyring
  readonly issuer: Issuer
  readonly baseDomain: string
  /** The host of control, if it serves an issued certificate. */
  readonly ownName: string | null
  readonly applyChange: ApplyChange
  readonly clock: Clock
  readonly logger: Logger
  /** In [0, 1). Passed in so that tests can fix it. */
  readonly random?: () => number
}

export function createRenewals(options: RenewalOptions & { readonly leadership: Leadership }): Periodic {
  const { leadership, clock, logger } = options
  return new Periodic({
    name: 'certificate renewal',
    intervalMs: certificateLimits.checkMs,
    run: leadership.whileLeading((signal) => orderDue(options, signal)),
    runAtStart: true,
    failure: 'certificate check failed',
    recovery: 'certificate check restored',
    clock,
    logger,
  })
}

/** Orders every certificate that is due, one after another, and forgets those that would be due but are not needed any more. */
export async function orderDue(options: RenewalOptions, signal: AbortSignal): Promise<void> {
  const { store, issuer, baseDomain, ownName, clock } = options
  const stored = new Map((await listCertificates(store.db)).map((certificate) => [certificate.name, certificate]))
  const wildcards = (await listNodeRegions(store.db)).map((region) => wildcardOf(region, baseDomain))
  const wanted = new Set(ownName === null ? wildcards : [ownName, ...wildcards])
  for (const name of wanted) {
    signal.throwIfAborted()
    if (isDue(stored.get(name), issuer.id, clock.now())) await order(options, name, stored.get(name), signal)
  }
  for (const { name, due_at } of stored.values())
    if (!wanted.has(name) && due_at <= clock.now()) await transact(store, (db) => removeCertificate(db, name))
}

async function order(
  options: RenewalOptions,
  name: string,
  known: CertificateState | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { store, keyring, issuer, applyChange, clock, logger, random = Math.random } = options
  try {
    const timeout = AbortSignal.timeout(certificateLimits.orderTimeoutMs)
    const { chain, key } = await issuer.issue(name, AbortSignal.any([signal, timeout]))
    const [not_before, not_after] = readValidity(chain, key)
    const due_at = renewalTime(not_before, not_after, random())
    const issued = { name, issuer: issuer.id, chain, key, not_before, not_after, due_at }
    await applyChange((db) => recordCertificate(db, keyring, issued))
    logger.notice({ name, not_after: new Date(not_after), renewal: new Date(due_at) }, 'certificate issued')
  } catch (error) {
    signal.throwIfAborted()
    const delayMs = retryDelayMs(known?.failures ?? 0, error instanceof OrderRejected, random())
    const reason = errorMessage(error)
    const failure = { name, due_at: clock.now() + delayMs, error: reason }
    await transact(store, (db) => recordOrderFailure(db, failure))
    const fields = { name, reason, not_after: known?.not_after ?? null, retry_in_seconds: Math.round(delayMs / 1000) }
    logger.error(fields, 'certificate order failed')
  }
}

/** Throws if the key does not fit: listeners would refuse the pair. */
function readValidity(chain: string, key: string): readonly [notBefore: number, notAfter: number] {
  const certificate = new X509Certificate(chain)
  if (!certificate.checkPrivateKey(createPrivateKey(key))) throw new Error('the issuer returned a certificate for another key')
  return [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
}
