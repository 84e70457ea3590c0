/**
 * Finds records that were published and are not in the zone: somebody else changed them, or the zone was restored from a copy.
 *
 * Owns: when they are published again. Does not own: looking, publishing.
 * Law: the first loss is repaired at once. A name that is lost again and again, because another program changes it or the server drops
 * changes that it confirmed, is published again later and later, until it is right at the end of a pause.
 */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { DnsCheck } from '#store/naming/dns-checks.ts'
import { type DnsRecord, listDnsRecordsOf } from '#store/naming/dns-records.ts'
import type { Store } from '#store/store.ts'
import { dnsLimits } from '../dns/limits.ts'
import type { DnsPublisher } from '../dns/publisher.ts'

/** Part of the publisher that handles lost records. */
export type LossNotice = Pick<DnsPublisher, 'settleSeconds' | 'sendAgain'>

type Seen = Omit<DnsCheck, 'checked_at'>
type Loss = { readonly times: number; readonly pauseMs: number; readonly endsAtMs: number }

export type LostRecordsOptions = {
  readonly store: Store
  readonly publisher: LossNotice
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
}

export class LostRecords {
  readonly #options: LostRecordsOptions
  /** By name. Forgotten with the process: the next leader repairs each name at once, too. */
  readonly #losses = new Map<string, Loss>()

  constructor(options: LostRecordsOptions) {
    this.#options = options
  }

  /** Has these published again. A name server that gives no answer proves nothing, nor does one that still has the old records for a moment. */
  async republish(checks: readonly Seen[]): Promise<void> {
    const { store, publisher, clock } = this.#options
    // Records have names in lower case.
    const byName = new Map(checks.map((check) => [check.name.toLowerCase(), check]))
    const settledMs = clock.now() - publisher.settleSeconds * 1000
    const isSettled = ({ published_at }: DnsRecord) => published_at !== null && Date.parse(published_at) < settledMs
    const records = Map.groupBy(await listDnsRecordsOf(store.db, [...byName.keys()]), ({ name }) => name)
    const isRight = (record: DnsRecord) => hasEvery(record, byName.get(record.name), (is) => is)
    const isLost = (record: DnsRecord) => isSettled(record) && hasEvery(record, byName.get(record.name), (is) => !is)
    const namesOf = (matches: (sets: readonly DnsRecord[]) => boolean) =>
      [...records].flatMap(([name, sets]) => (matches(sets) ? [name] : []))
    this.#forget(namesOf((sets) => sets.every(isRight)))
    const due = namesOf((sets) => sets.some(isLost)).filter((name) => this.#isDue(name))
    if (due.length === 0) return
    const pauses = due.map((name) => this.#count(name))
    this.#warn(due.filter((_, index) => (pauses[index]?.times ?? 0) > 1))
    await publisher.sendAgain(due)
  }

  #isDue(name: string): boolean {
    return this.#options.clock.monotonic() >= (this.#losses.get(name)?.endsAtMs ?? 0)
  }

  /** Forgets names that are right, and those that were not looked up since: their endpoints are gone. */
  #forget(right: readonly string[]): void {
    for (const name of right) if (this.#isDue(name)) this.#losses.delete(name)
    const before = this.#options.clock.monotonic() - dnsLimits.lostDelayMsMax
    for (const [name, { endsAtMs }] of this.#losses) if (endsAtMs < before) this.#losses.delete(name)
  }

  #count(name: string): Loss {
    const { clock, publisher } = this.#options
    const before = this.#losses.get(name)
    // Not shorter than the time after which a loss can be seen at all.
    const first = Math.max(dnsLimits.lostDelayMsMin, 2_000 * publisher.settleSeconds)
    const pauseMs = Math.min(dnsLimits.lostDelayMsMax, before === undefined ? first : 2 * before.pauseMs)
    const loss = { times: (before?.times ?? 0) + 1, pauseMs, endsAtMs: clock.monotonic() + pauseMs }
    this.#losses.set(name, loss)
    return loss
  }

  #warn(again: readonly string[]): void {
    if (again.length === 0) return
    const times = Math.max(...again.map((name) => this.#losses.get(name)?.times ?? 0))
    this.#options.logger.warn(
      { names: again.slice(0, 3), count: again.length, times },
      'DNS records lost again after they were published: see whether another program changes the zone, or a CNAME is at the name',
    )
  }
}

/** Says whether the record is confirmed, and all name servers show it, or none: as `isExpected` says. */
function hasEvery({ type, published, sent }: DnsRecord, check: Seen | undefined, isExpected: (is: boolean) => boolean): boolean {
  if (published === null || sent !== null || check === undefined || check.answers.length === 0) return false
  const wanted = published.toSorted().join()
  return check.answers.every((answer) => answer.error === null && isExpected(answer[type].join() === wanted))
}
