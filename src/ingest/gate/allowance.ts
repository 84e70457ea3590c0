/**
 * Remaining allowance of one account on this node.
 *
 * Owns: the token bucket of records, the counters of each day, and when they exceed a quota. Does not own: reports to control.
 * Law: a request costs a few additions and comparisons, and no allocation unless it is refused. On average no more records are accepted
 * than the quota. A request above it is accepted if the bucket has anything left, and those after it wait until that is paid back:
 * otherwise a batch that is larger than the bucket could never be sent.
 */

import { dayMs } from '#lib/time-units.ts'
import type { AccountUsage, UsageTotals } from '#model/node-protocol.ts'
import { dayOf, endOfDay, type NodeQuotas } from '#model/quota.ts'
import { Rejection } from './rejection.ts'

export type NodeQuota = keyof NodeQuotas

type Day = {
  readonly day: string
  readonly startMs: number
  readonly endMs: number
  bytes: number
  records: number
  /** Part of both totals that control knows. */
  reportedBytes: number
  reported: number
}

export class Allowance {
  readonly accountId: string
  #quotas: NodeQuotas
  /** This node's part of the quota. */
  #recordsPerSecond = 0
  /** Records that may be accepted now; negative after a large batch. */
  #tokens = 0
  #tokensMax = 0
  #refilledAtMs: number
  #today: Day
  /** Bytes that other nodes accepted today, or this one before its last start. */
  #bytesElsewhere = 0
  /** Days that are over and not yet reported. */
  #past: readonly Day[] = []

  constructor(accountId: string, quotas: NodeQuotas, nodes: number, nowMs: number) {
    this.accountId = accountId
    this.#quotas = quotas
    this.#today = newDay(nowMs)
    this.#refilledAtMs = nowMs
    this.configure(quotas, nodes)
    this.#tokens = this.#tokensMax
  }

  /** Divides the quota of records among `nodes`. */
  configure(quotas: NodeQuotas, nodes: number): void {
    this.#quotas = quotas
    this.#recordsPerSecond = quotas.records_per_second / nodes
    this.#tokensMax = Math.max(1, this.#recordsPerSecond)
    this.#tokens = Math.min(this.#tokens, this.#tokensMax)
  }

  /** Returns the quota that is used up; undefined if the account may send. */
  exceeded(nowMs: number): NodeQuota | undefined {
    if (nowMs >= this.#today.endMs || nowMs < this.#today.startMs) this.#startDay(nowMs)
    if (nowMs !== this.#refilledAtMs) {
      // The clock may be set back.
      const elapsedMs = Math.max(0, nowMs - this.#refilledAtMs)
      this.#tokens = Math.min(this.#tokensMax, this.#tokens + (elapsedMs * this.#recordsPerSecond) / 1000)
      this.#refilledAtMs = nowMs
    }
    if (this.#today.bytes + this.#bytesElsewhere >= this.#quotas.bytes_per_day) return 'bytes_per_day'
    return this.#tokens >= 1 ? undefined : 'records_per_second'
  }

  /** Takes records from the quota. Returns the quota that is used up, and then takes nothing. */
  take(records: number, nowMs: number): NodeQuota | undefined {
    const exceeded = this.exceeded(nowMs)
    if (exceeded === undefined) this.#tokens -= records
    return exceeded
  }

  /** Counts records that became durable. */
  count(records: number, bytes: number): void {
    this.#today.records += records
    this.#today.bytes += bytes
  }

  /** Returns why the account may not send, for its owner. */
  rejection(quota: NodeQuota, nowMs: number): Rejection {
    const { bytes_per_day, records_per_second } = this.#quotas
    const isRate = quota === 'records_per_second'
    const waitSeconds = isRate ? (1 - this.#tokens) / this.#recordsPerSecond : (this.#today.endMs - nowMs) / 1000
    const retryAfterSeconds = Math.max(1, Math.ceil(waitSeconds))
    const message = isRate
      ? `the account sends more than its quota of ${records_per_second} records a second; try again in ${retryAfterSeconds} s`
      : `the account has used up its quota of ${bytes_per_day} bytes a day; try again after midnight UTC`
    return new Rejection('quota_exceeded', message, { retryAfterSeconds, quota })
  }

  /** Whether so many nodes, each with as much to report as this one, may have used up a tenth of what the quota leaves. */
  isPressing(nodes: number): boolean {
    const { bytes, reportedBytes } = this.#today
    const left = this.#quotas.bytes_per_day - bytes - this.#bytesElsewhere
    return (bytes - reportedBytes) * nodes * 10 >= left
  }

  /** Returns the counters that control does not know yet. `sinceMs` is the time since the last report. */
  unreported(nowMs: number, sinceMs: number): readonly AccountUsage[] {
    if (nowMs >= this.#today.endMs) this.#startDay(nowMs)
    if (this.#past.length === 0 && this.#today.records === this.#today.reported) return []
    return [...this.#past, this.#today].flatMap(({ day, bytes, records, reported }) => {
      if (records === reported) return []
      const records_per_second = Math.round(((records - reported) * 1000) / Math.max(1, sinceMs))
      return [{ account_id: this.accountId, day, bytes, records, records_per_second }]
    })
  }

  /** Control has stored these counters, and `total` is what all nodes accepted on that day. */
  acknowledge({ day, bytes, records }: AccountUsage, total: UsageTotals['accounts'][number] | undefined): void {
    if (day === this.#today.day) {
      this.#today.reported = records
      this.#today.reportedBytes = bytes
      this.#bytesElsewhere = Math.max(0, (total?.bytes ?? 0) - bytes)
    } else this.#past = this.#past.filter((past) => past.day !== day)
  }

  #startDay(nowMs: number): void {
    const ended = this.#today
    // The clock may be set back to a day that was not reported.
    this.#today = this.#past.find(({ day }) => day === dayOf(nowMs)) ?? newDay(nowMs)
    const past = this.#past.filter((one) => one !== this.#today)
    this.#past = ended.records === ended.reported ? past : [...past, ended]
    this.#bytesElsewhere = 0
  }
}

function newDay(nowMs: number): Day {
  const endMs = endOfDay(nowMs)
  return { day: dayOf(nowMs), startMs: endMs - dayMs, endMs, bytes: 0, records: 0, reportedBytes: 0, reported: 0 }
}
