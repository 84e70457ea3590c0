/**
 * Looks at the certificates that nodes serve.
 *
 * Owns: which addresses are due. Does not own: what a certificate means for an endpoint (certificate-reasons.ts).
 * Law: each check is one handshake with the name of an endpoint of the node's region.
 */
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { listLabelsByRegion } from '#store/endpoints/endpoints.ts'
import {
  type CertificateCheck,
  listCertificateChecks,
  recordCertificateChecks,
  removeCertificateChecks,
} from '#store/naming/certificate-checks.ts'
import { listTlsNodes } from '#store/nodes/nodes.ts'
import { type Store, transact } from '#store/store.ts'
import { endpointName } from '../ingest-host.ts'
import { hasRecentHeartbeat } from '../serving-nodes.ts'
import { readServedCertificate } from './handshake.ts'
import { checkLimits } from './limits.ts'
import { type TlsAddress, tlsAddressesOf } from './tls-addresses.ts'

export type CertificateChecksOptions = {
  readonly store: Store
  /** Null if clients use addresses. */
  readonly baseDomain: string | null
  readonly clock: Clock
}

export async function checkCertificates(
  { store, baseDomain, clock }: CertificateChecksOptions,
  signal: AbortSignal,
): Promise<void> {
  const nowMs = clock.now()
  // A silent node serves nobody: its addresses would only use up the time of others.
  const nodes = (await listTlsNodes(store.db)).filter(({ ingest }) => hasRecentHeartbeat(ingest, nowMs))
  if (nodes.length === 0) return
  const known = await listCertificateChecks(
    store.db,
    nodes.map(({ id }) => id),
  )
  const checkedAt = new Map(known.map((check) => [keyOf(check), Date.parse(check.checked_at)]))
  const ageMs = (address: TlsAddress) => nowMs - (checkedAt.get(keyOf(address)) ?? 0)
  const addresses = nodes.flatMap((node) => tlsAddressesOf(node).map((address) => ({ ...address, region: node.region })))
  const present = new Set(addresses.map(keyOf))
  const gone = known.filter((check) => !present.has(keyOf(check)))
  if (gone.length > 0) await transact(store, (db) => removeCertificateChecks(db, gone))
  const due = addresses
    .filter((address) => ageMs(address) >= checkLimits.dueMs)
    .toSorted((a, b) => ageMs(b) - ageMs(a))
    .slice(0, checkLimits.handshakesMax)
  if (due.length === 0) return
  const labels = await listLabelsByRegion(store.db)
  const checks = await Promise.all(
    due.map(async ({ region, ...address }) => {
      const label = labels.get(region)
      const name = label === undefined || baseDomain === null ? null : endpointName({ label, region }, baseDomain)
      return check(address, name, signal)
    }),
  )
  signal.throwIfAborted()
  await transact(store, (db) => recordCertificateChecks(db, checks, clock.now()))
}

async function check(
  address: TlsAddress,
  name: string | null,
  signal: AbortSignal,
): Promise<Omit<CertificateCheck, 'checked_at'>> {
  try {
    const { names, notBeforeMs, notAfterMs } = await readServedCertificate(address, name, signal)
    return { ...address, names, not_before: isoTimestamp(notBeforeMs), not_after: isoTimestamp(notAfterMs), error: null }
  } catch (error) {
    return { ...address, names: '', not_before: null, not_after: null, error: errorMessage(error) }
  }
}

function keyOf({ node_id, address, port }: TlsAddress): string {
  return `${node_id} ${address} ${port}`
}
