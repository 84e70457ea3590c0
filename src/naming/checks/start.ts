/** Starts the checks that the leader runs every second: names and certificates. */
import type { Clock } from '#lib/clock.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Leadership } from '#store/cluster/leadership.ts'
import type { Store } from '#store/store.ts'
import { checkCertificates } from './certificate-checks.ts'
import { checkNames } from './dns-checks.ts'
import { checkLimits } from './limits.ts'
import { type LossNotice, LostRecords } from './lost-records.ts'
import { NameRound } from './name-round.ts'
import { NameServers } from './name-servers.ts'
import type { DnsKeeper } from './seen.ts'

export type ChecksOptions = {
  readonly store: Store
  readonly leadership: Pick<Leadership, 'whileLeading'>
  readonly baseDomain: string | null
  readonly dnsKeeper: DnsKeeper
  readonly dnsServer: ListenAddress | null
  /** Names that are looked up in a second, at most. */
  readonly dnsNamesPerSecond: number
  /** Undefined unless Inlet publishes the records. */
  readonly publisher: LossNotice | undefined
  readonly clock: Clock
  readonly logger: Logger
}

export function createChecks(options: ChecksOptions): readonly Service[] {
  const { leadership, baseDomain, dnsKeeper, dnsServer, dnsNamesPerSecond, publisher, clock, logger } = options
  const check = (name: string, work: (signal: AbortSignal) => Promise<void>) =>
    new Periodic({
      name,
      intervalMs: checkLimits.tickMs,
      run: leadership.whileLeading(work),
      failure: `${name} failed`,
      recovery: `${name} restored`,
      clock,
      logger,
    })
  const checks = [check('check of certificates', (signal) => checkCertificates(options, signal))]
  if (baseDomain === null || dnsKeeper === 'nobody') return checks
  const round = new NameRound({ namesMax: dnsNamesPerSecond, clock })
  const lostRecords = publisher && new LostRecords({ ...options, publisher })
  const names = { ...options, baseDomain, nameServers: new NameServers({ begin: dnsServer, clock }), round, lostRecords }
  return [...checks, check('check of DNS', (signal) => checkNames(names, signal))]
}
