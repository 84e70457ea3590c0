/**
 * Runs the job units that control leases to this process.
 *
 * Owns: the running units, their leases, the reports. Does not own: how a unit runs (unit-run.ts), which units exist (control).
 * Law: a unit runs only while its lease is valid. If control does not record the result of a unit, the next process that leases it runs it again.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { Periodic } from '#lib/periodic.ts'
import { type Random, randomUuid } from '#lib/random.ts'
import { Backoff } from '#lib/retry.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { JobUnit, LeaseRequest, Leases, UnitReport, UnitReports, UnitsReported } from '#model/job-protocol.ts'
import { jobWorkerLimits } from './limits.ts'
import type { UnitEnd } from './unit-scratch.ts'

export interface JobControl {
  leaseUnits(request: LeaseRequest, signal: AbortSignal): Promise<Leases>
  reportUnits(reports: UnitReports, signal: AbortSignal): Promise<UnitsReported>
}

export type JobWorkerOptions = {
  readonly nodeId: string
  readonly control: JobControl
  /** Whether this process has a configuration. Before that the node may not have joined, and control refuses every call. */
  readonly isConfigured: () => boolean
  /** Throws only the signal's reason. */
  readonly run: (unit: JobUnit, signal: AbortSignal) => Promise<UnitEnd>
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

type RunningUnit = {
  readonly unit: JobUnit
  readonly abort: AbortController
  /** Cancels the timer that aborts the unit when its lease ends, because another process may lease it then. */
  cancelTimer: () => void
  ended: Promise<void>
}

export class JobWorker implements Service {
  readonly name = 'job worker'
  readonly #options: JobWorkerOptions
  readonly #incarnation: string
  readonly #running = new Map<string, RunningUnit>()
  readonly #stopping = new AbortController()
  readonly #polls: Periodic

  constructor(options: JobWorkerOptions) {
    this.#options = options
    this.#incarnation = randomUuid(options.random)
    this.#polls = new Periodic({
      name: this.name,
      intervalMs: jobWorkerLimits.pollMs,
      failureDelay: { msMax: jobWorkerLimits.pollMsMax, random: options.random },
      run: (signal) => this.#poll(signal),
      runAtStart: true,
      failure: 'job unit lease failed',
      recovery: 'job unit lease restored',
      level: 'warn',
      failuresBeforeLog: 3,
      clock: options.clock,
      logger: options.logger,
    })
  }

  start(): Promise<void> {
    return this.#polls.start()
  }

  /** Aborts the running units at once, since each can be repeated, and releases their leases if control is reachable. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#polls.stop()
    const aborted = [...this.#running.values()]
    for (const { abort } of aborted) abort.abort()
    await Promise.all(aborted.map(({ ended }) => ended))
    const reports = aborted.map(({ unit }): UnitReport => ({ ...idsOf(unit), outcome: 'released' }))
    if (reports.length === 0) return
    const { control, nodeId, clock, logger } = this.#options
    await control
      .reportUnits({ node_id: nodeId, reports }, clock.timeout(jobWorkerLimits.releaseMs))
      .catch((error: unknown) => logger.warn({ reason: errorMessage(error) }, 'job lease release failed'))
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { control, nodeId, isConfigured, clock } = this.#options
    if (!isConfigured()) return
    const holding = [...this.#running.keys()]
    const max = jobWorkerLimits.unitsParallel - holding.length
    const requestedAt = clock.monotonic()
    const leases = await control.leaseUnits({ node_id: nodeId, incarnation: this.#incarnation, max, holding }, signal)
    const held = new Set(leases.held)
    for (const id of holding) {
      const running = this.#running.get(id)
      if (running === undefined) continue
      if (held.has(id)) this.#renew(running, requestedAt)
      else running.abort.abort()
    }
    for (const unit of leases.units) this.#begin(unit, requestedAt)
    // Control skipped so many units that it did not find one to run.
    if (leases.more && leases.units.length < max) this.#polls.runNow()
  }

  #begin(unit: JobUnit, requestedAt: number): void {
    const abort = new AbortController()
    const running: RunningUnit = { unit, abort, cancelTimer: () => undefined, ended: Promise.resolve() }
    this.#running.set(unit.lease_id, running)
    this.#renew(running, requestedAt)
    running.ended = this.#finish(unit, abort.signal).then(() => {
      running.cancelTimer()
      // Stop releases the leases of the units that it aborted.
      if (this.#stopping.signal.aborted && abort.signal.aborted) return
      this.#running.delete(unit.lease_id)
      this.#polls.runNow()
    })
  }

  async #finish(unit: JobUnit, signal: AbortSignal): Promise<void> {
    const { run, logger } = this.#options
    try {
      const end = await run(unit, signal)
      await this.#report({ ...idsOf(unit), ...end }, signal)
    } catch (error) {
      // Only an abort may end a unit early. Any other error breaks an invariant.
      if (!signal.aborted) throw error
      const { job_id, commit_id } = idsOf(unit)
      logger.info({ job_id, commit_id }, 'job segment abandoned')
    }
  }

  /** Sends the report until control has it or the lease is lost. */
  async #report(report: UnitReport, signal: AbortSignal): Promise<void> {
    const { control, nodeId, clock, random, logger } = this.#options
    const { reportRetryMsMin: delayMsMin, reportRetryMsMax: delayMsMax } = jobWorkerLimits
    const backoff = new Backoff({ delayMsMin, delayMsMax, random })
    for (;;) {
      signal.throwIfAborted()
      try {
        await control.reportUnits({ node_id: nodeId, reports: [report] }, signal)
        return
      } catch (error) {
        const delayMs = backoff.next()
        if (backoff.attempts === 5) logger.warn({ reason: errorMessage(error) }, 'job unit report failed')
        await sleep(clock, delayMs, signal)
      }
    }
  }

  /** Counts the lease from before the request was sent. Control counts from its response, so the lease never ends earlier there. */
  #renew(running: RunningUnit, requestedAt: number): void {
    const { clock } = this.#options
    running.cancelTimer()
    const leftMs = requestedAt + running.unit.lease_ms - clock.monotonic()
    running.cancelTimer = clock.setTimer(() => running.abort.abort(), leftMs)
  }
}

function idsOf(unit: JobUnit): { lease_id: string; job_id: string; commit_id: string } {
  const { lease_id, job_id } = unit
  const { id } = 'compaction' in unit ? unit.compaction : 'removal' in unit ? unit.removal : unit.commit
  return { lease_id, job_id, commit_id: id }
}
