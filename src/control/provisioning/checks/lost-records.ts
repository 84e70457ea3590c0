/** Finds records that were published and are not in the zone: somebody else changed them, or the zone was restored from a copy. */
import type { DnsCheck } from '#store/dns-checks.ts'
import { type DnsRecord, listDnsRecordsOf } from '#store/dns-records.ts'
import type { Store } from '#store/store.ts'
import type { DnsPublisher } from '../dns/publisher.ts'

/** What the publisher has to know of lost records. */
export type LossNotice = Pick<DnsPublisher, 'settleSeconds' | 'sendAgain'>

type Seen = Omit<DnsCheck, 'checked_at'>
type LostRecordsOptions = { readonly store: Store; readonly publisher: LossNotice; readonly nowMs: number }

/** Has these published again. A name server that gives no answer proves nothing, nor does one that still has the old records for a moment. */
export async function republishLost(checks: readonly Seen[], { store, publisher, nowMs }: LostRecordsOptions): Promise<void> {
  // Records have names in lower case.
  const byName = new Map(checks.map((check) => [check.name.toLowerCase(), check]))
  const settledMs = nowMs - publisher.settleSeconds * 1000
  const isSettled = ({ published_at }: DnsRecord) => published_at !== null && Date.parse(published_at) < settledMs
  const records = await listDnsRecordsOf(store.db, [...byName.keys()])
  const lost = records.filter((record) => isSettled(record) && isLost(record, byName.get(record.name)))
  if (lost.length > 0) await publisher.sendAgain([...new Set(lost.map(({ name }) => name))])
}

function isLost({ type, published, sent }: DnsRecord, check: Seen | undefined): boolean {
  if (published === null || sent !== null || check === undefined || check.answers.length === 0) return false
  const wanted = published.toSorted().join()
  return check.answers.every((answer) => answer.error === null && answer[type].join() !== wanted)
}
