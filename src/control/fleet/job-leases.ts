/**
 * Leases the units of jobs to nodes, and records their results.
 *
 * Owns: which node has the lease of a unit, and when a unit fails or is skipped. Does not own: the work, which nodes do.
 * Law: a unit is recorded once, with its artifacts and counters in one transaction, and only for the node that has its lease. A unit fails only by
 * a report. A process that ended without one, killed with its node or for another reason, proves nothing about the unit: what reads its content is
 * another process, whose end is reported.
 */
import { AppError } from '#errors.ts'
import { batchCalls } from '#lib/batch-calls.ts'
import type { Keyring } from '#lib/keyring.ts'
import { prefixOf } from '#model/artifact.ts'
import type { ViewOutcome } from '#model/commit.ts'
import { toSentView } from '#model/definition.ts'
import { DestinationTarget } from '#model/destination.ts'
import { newId } from '#model/id.ts'
import type {
  CompactionUnit,
  JobUnit,
  LeaseRequest,
  Leases,
  RemovalUnit,
  Unit,
  UnitReport,
  UnitReports,
  UnitsReported,
} from '#model/job-protocol.ts'
import { readValuesOfView } from '#store/accounts/secrets.ts'
import { findCommit, insertAddition, type StoredCommit } from '#store/commits/commit-additions.ts'
import { lockCommits } from '#store/commits/commits.ts'
import { accountsLacking, listMissingCommits } from '#store/commits/missing-commits.ts'
import { findDestination } from '#store/endpoints/destinations.ts'
import { getView } from '#store/endpoints/views.ts'
import { markCompactionFailed, recordRemoval } from '#store/jobs/compactions.ts'
import {
  type AvailableUnit,
  findUnit,
  finishUnit,
  hasAvailableUnits,
  type LeasedUnit,
  leaseUnit,
  listAvailableUnits,
  listLeasedUnits,
  lockJob,
  recordJobError,
  renewLease,
  returnUnit,
} from '#store/jobs/job-units.ts'
import { listRunningJobIds, lockRunningJob, type RunningJob } from '#store/jobs/jobs.ts'
import { leaseLimits } from '#store/limits.ts'
import { type Tx, transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import type { DeliveredMetrics } from '../metrics/delivered-metrics.ts'
import { goneReason, prepareCompaction, recordCompaction } from './compaction-units.ts'
import { chooseSource } from './job-source.ts'

export type JobLeasesOptions = Pick<ControlContext, 'store' | 'clock' | 'logger'> & {
  readonly delivered: Pick<DeliveredMetrics, 'addView'>
  /** Opens the secrets that views need. */
  readonly keyring: Keyring
}

const noRows = { processed: 0, accepted: 0, dropped: 0, dlq: 0, failed: 0 }

export class JobLeases {
  readonly #options: JobLeasesOptions
  // Every node asks every two seconds, and nearly always there is nothing: many questions share a query that begins after they arrived.
  readonly #readLeased = batchCalls((nodeIds: readonly string[]) => listLeasedUnits(this.#options.store.db, nodeIds))
  readonly #readRunning = batchCalls(async (regions: readonly string[]) => {
    const { db } = this.#options.store
    const jobs = new Map<string, readonly string[]>()
    const missing = await listMissingCommits(db)
    for (const region of new Set(regions)) {
      // Units wait: they would read files that were merged and removed, and leave out segments.
      const lacking = accountsLacking(missing, region)
      if (lacking !== 'all') jobs.set(region, await listRunningJobIds(db, region, lacking))
    }
    return jobs
  })

  constructor(options: JobLeasesOptions) {
    this.#options = options
  }

  /** `region` is that of the node. */
  async lease(request: LeaseRequest, region: string): Promise<Leases> {
    const { store, clock } = this.#options
    const held: string[] = []
    const leased = await this.#readLeased(request.node_id)
    for (const unit of leased.filter(({ node_id }) => node_id === request.node_id)) {
      if (await transact(store, (db) => this.#renewOrReturn(db, unit, request))) held.push(unit.lease_id)
    }
    const units: JobUnit[] = []
    let more = false
    if (request.max === 0) return { units, held, more }
    const running = (await this.#readRunning(region)).get(region) ?? []
    for (const id of running) {
      const wanted = request.max - units.length
      if (wanted === 0) return { units, held, more: true }
      if (!(await hasAvailableUnits(store.db, id, clock.now()))) continue
      const taken = await transact(store, (db) => this.#leaseFromJob(db, id, wanted, request))
      units.push(...taken.units)
      more ||= taken.more
    }
    return { units, held, more }
  }

  async report({ node_id, reports }: UnitReports): Promise<UnitsReported> {
    const { store, logger, delivered } = this.#options
    const results: UnitsReported['results'] = []
    for (const report of reports) {
      const { result, counted } = await transact(store, (db) => this.#recordReport(db, node_id, report))
      if (counted !== undefined) delivered.addView(counted)
      if (result === 'stale') logger.warn({ node_id, job_id: report.job_id }, 'stale job report ignored')
      results.push({ lease_id: report.lease_id, result })
    }
    return { results }
  }

  /** Renews the lease if the request names it, and returns the unit to the queue otherwise. Returns whether the process may continue. */
  async #renewOrReturn(db: Tx, unit: LeasedUnit & { readonly canceled: boolean }, request: LeaseRequest): Promise<boolean> {
    const now = this.#options.clock.now()
    await lockJob(db, unit.job_id)
    if (request.holding.includes(unit.lease_id)) {
      if (!unit.canceled) await renewLease(db, unit, now)
      return !unit.canceled
    }
    // Either the response to this process was lost, or an earlier process ended while it held the unit.
    if (unit.incarnation === request.incarnation) await returnUnit(db, unit, now)
    else await this.#returnLost(db, unit, now)
    return false
  }

  /** Returns a unit whose process ended to the queue, and how often that has happened, and how long the unit waits now. */
  async #returnLost(db: Tx, unit: HeldUnit, now: number): Promise<{ readonly deaths: number; readonly waitMs: number }> {
    const deaths = unit.deaths + 1
    const { lostDelayMsMin, lostDelayMsMax } = leaseLimits
    const waitMs = deaths === 1 ? 0 : Math.min(lostDelayMsMax, lostDelayMsMin * 2 ** (deaths - 2))
    await returnUnit(db, { ...unit, deaths }, now + waitMs)
    const { job_id, commit_id } = unit
    this.#options.logger.warn({ job_id, commit_id, deaths, retry_in_ms: waitMs }, 'process ended during a job segment')
    if (waitMs > 0)
      await recordJobError(
        db,
        job_id,
        `the process of a node ended ${deaths} times while it worked on ${commit_id}; it is tried again after ${waitMs / 1000} s`,
      )
    return { deaths, waitMs }
  }

  /** Leases up to `wanted` units of a job. Units with nothing to do are marked as skipped on the way. */
  async #leaseFromJob(
    db: Tx,
    id: string,
    wanted: number,
    request: LeaseRequest,
  ): Promise<{ readonly units: readonly JobUnit[]; readonly more: boolean }> {
    const now = this.#options.clock.now()
    const job = await lockRunningJob(db, id, now)
    if (job === undefined) return { units: [], more: false }
    const units: JobUnit[] = []
    const available = await listAvailableUnits(db, id, now)
    for (const candidate of available) {
      if (units.length === wanted) return { units, more: true }
      let unit = candidate
      // A leased unit is available only if its lease expired without a report.
      if (candidate.lease_id !== null) {
        const { deaths, waitMs } = await this.#returnLost(db, { ...candidate, lease_id: candidate.lease_id }, now)
        if (waitMs > 0) continue
        unit = { ...candidate, deaths }
      }
      const prepared = await prepareUnit(db, job, unit, { now, keyring: this.#options.keyring })
      if (prepared === 'later') continue
      if ('reason' in prepared) {
        if (prepared.status === 'failed') await fail(db, unit, prepared, now)
        else await finishUnit(db, unit, prepared, now)
        continue
      }
      const lease = { lease_id: newId(), node_id: request.node_id, incarnation: request.incarnation }
      await leaseUnit(db, unit, lease, now)
      units.push({ ...prepared, lease_id: lease.lease_id, lease_ms: leaseLimits.leaseMs, job_id: id })
    }
    return { units, more: available.length === leaseLimits.unitsPerJobMax }
  }

  async #recordReport(db: Tx, node_id: string, report: UnitReport): Promise<Recorded> {
    const { clock, logger } = this.#options
    const now = clock.now()
    const { job_id, commit_id, lease_id } = report
    const commit = report.outcome === 'done' ? await findCommit(db, commit_id) : undefined
    // Before the job, as when a commit is recorded: both change counters, and then jobs.
    if (commit !== undefined) await lockCommits(db, commit.endpoint_id)
    const job = await lockJob(db, job_id)
    const unit = job && (await findUnit(db, job_id, commit_id))
    if (job === undefined || unit?.lease_id !== lease_id || unit.node_id !== node_id) return { result: 'stale' }
    if (unit.status !== 'leased') return { result: 'known' }
    switch (report.outcome) {
      case 'done': {
        const { artifacts, view: outcome } = report
        const { view_id } = unit
        if (view_id === null) throw new AppError('validation_error', 'the unit is a compaction')
        if ([outcome, ...Object.values(artifacts)].some((each) => (each.view_id ?? view_id) !== view_id))
          throw new AppError('validation_error', 'the outcome or an artifact is of another view than the job')
        const { from_view_id } = job
        const isNew =
          commit !== undefined && (await insertAddition(db, { commit, view_id, from_view_id, job_id, artifacts, outcome }, now))
        if (!isNew) {
          const reason = 'another job made this output in the meantime'
          await finishUnit(db, report, { status: 'skipped', reason }, now)
          break
        }
        await finishUnit(db, report, { status: 'done', outcome }, now)
        return { result: 'recorded', counted: outcome }
      }
      case 'compacted': {
        if (unit.view_id !== null) throw new AppError('validation_error', 'the unit is not a compaction')
        const outcome = await recordCompaction(db, commit_id, { file: report.file, now })
        const end =
          outcome === undefined ? ({ status: 'skipped', reason: goneReason } as const) : ({ status: 'done', outcome } as const)
        await finishUnit(db, report, end, now)
        break
      }
      case 'removed': {
        if (unit.view_id !== null) throw new AppError('validation_error', 'the unit is not a compaction')
        await recordRemoval(db, commit_id, now)
        await finishUnit(db, report, { status: 'done', outcome: noRows }, now)
        break
      }
      case 'failed':
        logger.warn({ job_id, commit_id, reason: report.reason }, 'job segment failed')
        await fail(db, { ...unit, ...report }, report, now)
        break
      case 'retry':
        await recordJobError(db, job_id, report.reason)
        await returnUnit(db, { ...report, deaths: unit.deaths }, now + leaseLimits.retryMs)
        break
      case 'released':
        await returnUnit(db, { ...report, deaths: unit.deaths }, now)
    }
    return { result: 'recorded' }
  }
}

type Recorded = {
  readonly result: UnitsReported['results'][number]['result']
  /** The outcome that is new in the counters of its view. */
  readonly counted?: ViewOutcome
}

/** Fails a unit. Only somebody who asks for it causes another attempt at a compaction. */
async function fail(
  db: Tx,
  unit: Pick<AvailableUnit, 'job_id' | 'commit_id' | 'view_id'>,
  { reason, records = 0 }: { readonly reason: string; readonly records?: number },
  now: number,
): Promise<void> {
  if (unit.view_id === null) await markCompactionFailed(db, unit.commit_id, now)
  await finishUnit(db, unit, { status: 'failed', reason, records }, now)
}

type HeldUnit = Pick<LeasedUnit, 'job_id' | 'commit_id' | 'lease_id' | 'deaths'>

type Prepared =
  | Pick<CompactionUnit, 'account_id' | 'compaction' | 'target'>
  | Pick<RemovalUnit, 'account_id' | 'removal' | 'target'>
  | Pick<Unit, 'account_id' | 'commit' | 'view' | 'source' | 'target'>
  | { readonly status: 'skipped' | 'failed'; readonly reason: string }
  | 'later'

/** Returns what a node needs for a unit, or why there is nothing to do. */
async function prepareUnit(
  db: Tx,
  job: RunningJob,
  { commit_id }: AvailableUnit,
  { now, keyring }: { readonly now: number; readonly keyring: Keyring },
): Promise<Prepared> {
  const { view_id } = job
  if (view_id === null) return prepareCompaction(db, job.account_id, commit_id, now)
  const commit = await findCommit(db, commit_id)
  if (commit === undefined) return { status: 'skipped', reason: 'the commit was deleted' }
  const source = chooseSource(commit, { ...job, view_id })
  if ('reason' in source) return source
  const target = await findTarget(db, job.account_id, commit, source.artifact.key)
  if (target === undefined) return { status: 'failed', reason: 'the destination of the segment was deleted' }
  const { id, name, version, definition } = await getView(db, job.account_id, view_id)
  const from_version = source.artifact.view_version ?? null
  const { endpoint_id, node_id, log, seq, sealed_at } = commit
  return {
    account_id: job.account_id,
    commit: { id: commit.id, endpoint_id, node_id, log, seq, sealed_at },
    view: toSentView({ id, name, version, definition }, await readValuesOfView(db, keyring, id)),
    source: { ...source, from_version },
    target,
  }
}

/** Returns the bucket and prefix that the segment was delivered to, with the current role of the destination. */
async function findTarget(
  db: Tx,
  account_id: string,
  { destination: { id, bucket, region }, endpoint_id }: StoredCommit,
  key: string,
): Promise<DestinationTarget | undefined> {
  const destination = await findDestination(db, account_id, id)
  if (destination === undefined) return undefined
  return DestinationTarget.parse({ ...destination, bucket, region, prefix: prefixOf(key, endpoint_id) })
}
