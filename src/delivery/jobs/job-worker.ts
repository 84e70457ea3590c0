/**
 * Works off units of jobs that control leases to this process.
 *
 * Owns: which units are in work, their leases, the reports. Does not own: how one is done (unit-run.ts), which there are (control).
 * Law: a unit is in work only while its lease is good; what control has not recorded is done again by whoever leases it next.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { Periodic } from '#lib/periodic.ts'
import { Backoff } from '#lib/retry.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import type { LeaseRequest, Leases, Unit, UnitReport, UnitReports, UnitsReported } from '#model/job-protocol.ts'
import { jobWorkerLimits } from './limits.ts'
import type { UnitEnd } from './unit-run.ts'

export interface JobControl {
  leaseUnits(request: LeaseRequest, signal: AbortSignal): Promise<Leases>
  reportUnits(reports: UnitReports, signal: AbortSignal): Promise<UnitsReported>
}

export type JobWorkerOptions = {
  readonly nodeId: string
  readonly control: JobControl
  /** Throws only when the signal aborts. */
  readonly run: (unit: Unit, signal: AbortSignal) => Promise<UnitEnd>
  readonly clock: Clock
  readonly logger: Logger
}

type InWork = {
  readonly unit: Unit
  readonly abort: AbortController
  /** Of the timer that puts it down at the end of its lease: somebody else may have it then. */
  cancelTimer: () => void
  ended: Promise<void>
}

export class JobWorker implements Service {
  readonly name = 'job worker'
  readonly #options: JobWorkerOptions
  readonly #incarnation = newId()
  readonly #inWork = new Map<string, InWork>()
  readonly #stopping = new AbortController()
  readonly #polls: Periodic

  constructor(options: JobWorkerOptions) {
    this.#options = options
    this.#polls = new Periodic({
      name: this.name,
      intervalMs: jobWorkerLimits.pollMs,
      failureDelayMsMax: jobWorkerLimits.pollMsMax,
      run: (signal) => this.#poll(signal),
      runAtStart: true,
      failure: 'leasing job units failed',
      recovery: 'leasing job units restored',
      level: 'warn',
      failuresBeforeLog: 3,
      clock: options.clock,
      logger: options.logger,
    })
  }

  start(): Promise<void> {
    return this.#polls.start()
  }

  /** Everything can be done again, so it ends at once, and gives its leases back if control is there. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#polls.stop()
    const cutOff = [...this.#inWork.values()]
    for (const { abort } of cutOff) abort.abort()
    await Promise.all(cutOff.map(({ ended }) => ended))
    const reports = cutOff.map(({ unit }): UnitReport => ({ ...namesOf(unit), outcome: 'released' }))
    if (reports.length === 0) return
    const { control, nodeId, logger } = this.#options
    await control
      .reportUnits({ node_id: nodeId, reports }, AbortSignal.timeout(jobWorkerLimits.releaseMs))
      .catch((error: unknown) => logger.warn({ reason: errorMessage(error) }, 'leases of jobs could not be given back'))
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { control, nodeId, clock } = this.#options
    const holding = [...this.#inWork.keys()]
    const max = jobWorkerLimits.unitsParallel - holding.length
    const askedAt = clock.monotonic()
    const leases = await control.leaseUnits({ node_id: nodeId, incarnation: this.#incarnation, max, holding }, signal)
    const held = new Set(leases.held)
    for (const id of holding) {
      const inWork = this.#inWork.get(id)
      if (inWork === undefined) continue
      if (held.has(id)) this.#renew(inWork, askedAt)
      else inWork.abort.abort()
    }
    for (const unit of leases.units) this.#begin(unit, askedAt)
    // Control passed over so many units that it did not get to one that is to be done.
    if (leases.more && leases.units.length < max) this.#polls.runNow()
  }

  #begin(unit: Unit, askedAt: number): void {
    const abort = new AbortController()
    const inWork: InWork = { unit, abort, cancelTimer: () => undefined, ended: Promise.resolve() }
    this.#inWork.set(unit.lease_id, inWork)
    this.#renew(inWork, askedAt)
    inWork.ended = this.#finish(unit, abort.signal).then(() => {
      inWork.cancelTimer()
      // What was cut off by the stop is still to be given back.
      if (this.#stopping.signal.aborted && abort.signal.aborted) return
      this.#inWork.delete(unit.lease_id)
      this.#polls.runNow()
    })
  }

  async #finish(unit: Unit, signal: AbortSignal): Promise<void> {
    const { run, logger } = this.#options
    try {
      const end = await run(unit, signal)
      await this.#report({ ...namesOf(unit), ...end }, signal)
    } catch (error) {
      // Only an abort ends it early; anything else is a broken invariant of this process.
      if (!signal.aborted) throw error
      logger.info({ job_id: unit.job_id, commit_id: unit.commit.id }, 'a segment of a job was put down')
    }
  }

  /** Until control has it, or the lease is lost. */
  async #report(report: UnitReport, signal: AbortSignal): Promise<void> {
    const { control, nodeId, clock, logger } = this.#options
    const backoff = new Backoff({ delayMsMin: jobWorkerLimits.reportRetryMsMin, delayMsMax: jobWorkerLimits.reportRetryMsMax })
    for (;;) {
      signal.throwIfAborted()
      try {
        await control.reportUnits({ node_id: nodeId, reports: [report] }, signal)
        return
      } catch (error) {
        const delayMs = backoff.next()
        if (backoff.attempts === 5)
          logger.warn({ reason: errorMessage(error) }, 'control does not take what became of a job’s segment')
        await sleep(clock, delayMs, signal)
      }
    }
  }

  /** Control counts from when it answered, which is later than when it was asked. */
  #renew(inWork: InWork, askedAt: number): void {
    const { clock } = this.#options
    inWork.cancelTimer()
    const leftMs = askedAt + inWork.unit.lease_ms - clock.monotonic()
    inWork.cancelTimer = clock.setTimer(() => inWork.abort.abort(), leftMs)
  }
}

function namesOf({ lease_id, job_id, commit }: Unit): { lease_id: string; job_id: string; commit_id: string } {
  return { lease_id, job_id, commit_id: commit.id }
}
