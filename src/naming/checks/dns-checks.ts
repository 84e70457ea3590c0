/**
 * Looks up the names of endpoints.
 *
 * Owns: what is recorded. Does not own: which names are next (name-round.ts), what should be there, and what a difference means
 * (dns-reasons.ts, lost-records.ts).
 * Law: a difference is recorded at once. That nothing changed is recorded now and then: otherwise the database would be written to for
 * every look-up.
 */
import type { Clock } from '#lib/clock.ts'
import { type DnsCheck, isRecorded, recordDnsChecks } from '#store/naming/dns-checks.ts'
import { type Store, transact } from '#store/store.ts'
import { endpointName } from '../ingest-host.ts'
import { checkLimits } from './limits.ts'
import type { LostRecords } from './lost-records.ts'
import type { NameRound } from './name-round.ts'
import type { NameServers } from './name-servers.ts'

export type DnsChecksOptions = {
  readonly store: Store
  readonly baseDomain: string
  readonly nameServers: NameServers
  readonly round: NameRound
  /** Undefined if the operator keeps the records. */
  readonly lostRecords: LostRecords | undefined
  readonly clock: Clock
}

export async function checkNames(options: DnsChecksOptions, signal: AbortSignal): Promise<void> {
  const { store, baseDomain, nameServers, round, lostRecords, clock } = options
  const endpoints = await round.next(store.db)
  const cancel = () => void nameServers.cancel().catch(() => undefined)
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const checks: Omit<DnsCheck, 'checked_at'>[] = []
    const news: typeof checks = []
    const turns = endpoints.values()
    const askInTurn = async () => {
      for (const endpoint of turns) {
        if (signal.aborted) return
        const name = endpointName(endpoint, baseDomain)
        const check = { endpoint_id: endpoint.id, name, answers: await nameServers.ask(name) }
        checks.push(check)
        const isRecent = clock.now() - (endpoint.checked_at ?? 0) < checkLimits.recordedMs
        if (!(isRecent && isRecorded(endpoint, check))) news.push(check)
      }
    }
    await Promise.all(Array.from({ length: checkLimits.namesInFlight }, askInTurn))
    // A cancelled check says nothing about the name servers.
    if (signal.aborted) return
    await transact(store, (db) => recordDnsChecks(db, news, clock.now()))
    await lostRecords?.republish(checks)
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}
