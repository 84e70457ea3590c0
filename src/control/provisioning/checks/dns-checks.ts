/**
 * Looks up the names of endpoints.
 *
 * Owns: which names are due. Does not own: what should be there, and what a difference means (dns-reasons.ts, lost-records.ts).
 * Law: one tick looks up a bounded number of names: with more, each is looked up less often.
 */
import type { Clock } from '#lib/clock.ts'
import { type DnsCheck, listEndpointsToLookUp, recordDnsChecks } from '#store/dns-checks.ts'
import type { Store } from '#store/store.ts'
import { endpointName } from '../ingest-host.ts'
import { checkLimits } from './limits.ts'
import { type LossNotice, republishLost } from './lost-records.ts'
import type { NameServers } from './name-servers.ts'

export type DnsChecksOptions = {
  readonly store: Store
  readonly baseDomain: string
  readonly nameServers: NameServers
  /** Undefined if the operator keeps the records. */
  readonly publisher: LossNotice | undefined
  readonly clock: Clock
}

export async function checkNames(options: DnsChecksOptions, signal: AbortSignal): Promise<void> {
  const { store, baseDomain, nameServers, publisher, clock } = options
  const due = await listEndpointsToLookUp(store.db, clock.now() - checkLimits.dueMs, checkLimits.namesMax)
  const cancel = () => void nameServers.cancel().catch(() => undefined)
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const checks: Omit<DnsCheck, 'checked_at'>[] = []
    const askInTurn = async () => {
      for (let next = due.shift(); next !== undefined && !signal.aborted; next = due.shift()) {
        const name = endpointName(next, baseDomain)
        checks.push({ endpoint_id: next.id, name, answers: await nameServers.ask(name) })
      }
    }
    await Promise.all(Array.from({ length: checkLimits.namesInFlight }, askInTurn))
    // What was cancelled says nothing about the name servers.
    if (signal.aborted) return
    const nowMs = clock.now()
    await recordDnsChecks(store.db, checks, nowMs)
    if (publisher !== undefined) await republishLost(checks, { store, publisher, nowMs })
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}
