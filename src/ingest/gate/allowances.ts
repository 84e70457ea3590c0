/**
 * Allowances of all accounts on this node, and their usage.
 *
 * Owns: one allowance per account; that control learns what was accepted, and nodes what others accepted. Does not own: the arithmetic
 * (allowance.ts), what a protocol does with a refusal.
 * Law: counters are absolute, of one start of this process, so that a report can be repeated. Without control each node counts for itself.
 */
import { must } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { type UsageReport, type UsageTotals, usageAccountsMax } from '#model/node-protocol.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { Allowance, type NodeQuota } from './allowance.ts'
import { gateLimits } from './limits.ts'

export interface UsageSink {
  reportUsage(report: UsageReport, signal: AbortSignal): Promise<UsageTotals>
}

export type AllowancesOptions = {
  readonly nodeId: string
  readonly control: UsageSink
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

export class Allowances implements Service {
  readonly name = 'usage report'
  readonly #options: AllowancesOptions
  readonly #reports: Periodic
  readonly #run: string
  /** Kept until the end of the process, so that counters never begin again. */
  readonly #byAccount = new Map<string, Allowance>()
  #endpoints: readonly SnapshotEndpoint[] = []
  /** Healthy nodes of the region, as control said last. */
  #nodes = 1
  /** By account: since when it counted what control does not know. */
  readonly #countedSinceMs = new Map<string, number>()
  #lookedAtMs: number
  /** Refused requests, connections and messages. */
  readonly refusals = new Map<NodeQuota, number>()

  constructor(options: AllowancesOptions) {
    const { clock, random, logger } = options
    this.#options = options
    this.#run = random.bytes(9).toString('base64url')
    this.#lookedAtMs = clock.monotonic()
    this.#reports = new Periodic({
      name: this.name,
      intervalMs: gateLimits.usageReportMs,
      run: (signal) => this.#report(signal, false),
      failure: 'usage report failed',
      recovery: 'usage report restored',
      level: 'warn',
      failuresBeforeLog: gateLimits.usageFailuresBeforeLog,
      clock,
      logger,
    })
  }

  start(): Promise<void> {
    return this.#reports.start()
  }

  /** Reports what was accepted since the last report. Without control that is lost. */
  async stop(signal: AbortSignal): Promise<void> {
    await this.#reports.stop()
    const timeout = this.#options.clock.timeout(gateLimits.lastUsageReportMs)
    await this.#report(AbortSignal.any([signal, timeout]), true).catch(() => undefined)
  }

  /** Applies the quotas of a snapshot. */
  configure(endpoints: readonly SnapshotEndpoint[]): void {
    this.#endpoints = endpoints
    const now = this.#options.clock.now()
    for (const { account_id, account_quotas } of endpoints) {
      const known = this.#byAccount.get(account_id)
      if (known !== undefined) known.configure(account_quotas, this.#nodes)
      else this.#byAccount.set(account_id, new Allowance(account_id, account_quotas, this.#nodes, now))
    }
  }

  /** Returns the allowance of an account that has, or had, an endpoint. It stays the same object. */
  of(accountId: string): Allowance {
    return must(this.#byAccount.get(accountId), 'the allowance of the account')
  }

  countRefusal(quota: NodeQuota): void {
    this.refusals.set(quota, (this.refusals.get(quota) ?? 0) + 1)
  }

  /** The more nodes report an account, the less often each does: control sums up the reports of all of them each time. */
  #dueAfterMs(): number {
    return this.#nodes === 1 ? 0 : Math.min(gateLimits.usageReportMsMax, gateLimits.usageReportMs * this.#nodes)
  }

  /** `everything`: also accounts that are not due. */
  async #report(signal: AbortSignal, everything: boolean): Promise<void> {
    const { nodeId, control, clock } = this.#options
    const now = clock.now()
    const startedAtMs = clock.monotonic()
    const all = [...this.#byAccount.values()].flatMap((allowance) => {
      const sinceMs = this.#countedSinceMs.get(allowance.accountId) ?? this.#lookedAtMs
      const unreported = allowance.unreported(now, startedAtMs - sinceMs)
      if (unreported.length === 0) this.#countedSinceMs.set(allowance.accountId, startedAtMs)
      const isDue = everything || startedAtMs - sinceMs >= this.#dueAfterMs() || allowance.isPressing(this.#nodes)
      return isDue ? unreported.map((usage) => ({ allowance, usage })) : []
    })
    this.#lookedAtMs = startedAtMs
    if (all.length === 0) return
    const some = all.slice(0, usageAccountsMax)
    const report = { node_id: nodeId, run: this.#run, accounts: some.map(({ usage }) => usage) }
    const { healthy_nodes, accounts } = await control.reportUsage(report, signal)
    const totals = new Map(accounts.map((total) => [`${total.account_id} ${total.day}`, total]))
    for (const { allowance, usage } of some) {
      allowance.acknowledge(usage, totals.get(`${usage.account_id} ${usage.day}`))
      this.#countedSinceMs.set(usage.account_id, startedAtMs)
      // Behind the others, which may have found no place in this report.
      this.#byAccount.delete(usage.account_id)
      this.#byAccount.set(usage.account_id, allowance)
    }
    if (healthy_nodes === this.#nodes) return
    this.#nodes = healthy_nodes
    this.configure(this.#endpoints)
  }
}
