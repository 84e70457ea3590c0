/**
 * `inlet node --adopt DIR`: delivers what a node whose machine is gone left on a disk, under the id of that node, and ends.
 *
 * Owns: when there is nothing left to do, and what is printed meanwhile. Does not own: the recovery of the log (ingest), delivery.
 */

import type { Config } from '#config/config.ts'
import { type Backlog, countWaiting, isWaiting, type Waiting } from '#delivery/segments/backlog.ts'
import type { Receiver } from '#ingest/adopted/hand-over.ts'
import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import { readTrimmed } from '#lib/read-or-create.ts'
import { system } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { nodeLimits } from '#model/limits.ts'
import type { EndpointLag } from '#model/node-protocol.ts'
import { adoptWal } from '#node/identity.ts'
import { adoptedConfig } from './adopted-directory.ts'
import type { App } from './run-app.ts'

const checkMs = 1_000
/** How often the log says what is left, if that changed. */
const reportMs = 10_000

type Progress = Waiting & {
  /** Segments that only a person can do something about. */
  readonly forPerson: number
  /** Whether the rest of it is delivered, and control knows. */
  readonly isDone: boolean
}

/** Returns what is left of what delivery holds. */
export function progressOf(backlog: Backlog): Progress {
  const { isCurrent, lags, reportedLags, reports, problem } = backlog
  const isReported = JSON.stringify(reportedLags) === JSON.stringify(lags)
  return {
    ...countWaiting(backlog),
    forPerson: lags.reduce((total, lag) => total + forPerson(lag), 0),
    isDone: isCurrent && isReported && reports === 0 && problem === null && lags.every(isDone),
  }
}

const forPerson = (lag: EndpointLag) => lag.parked_segments + lag.quarantined_segments

/** A log without segments has a row only while its endpoint is being deleted: that waits for the log to be closed. */
function isDone(lag: EndpointLag): boolean {
  return !isWaiting(lag) && (lag.closed || forPerson(lag) > 0)
}

type Hooks = { readonly logger: Logger; readonly clock: Clock }

/**
 * `refused` resolves when control refuses this machine for good. `hasHandedOver`: whether the node on this machine knows the idempotency keys of
 * the adopted one.
 */
type AdoptedIngest = App & { readonly refused: Promise<void>; hasHandedOver(): boolean }

type IngestHooks = Hooks & { readonly stopping: AbortSignal; readonly receiver: Receiver | undefined }

export type AdoptionOptions = Hooks & {
  readonly config: Config
  readonly directory: string
  /** Whether somebody set the region, whose default fits one machine. */
  readonly isRegionGiven: boolean
  /** Called once nothing is left: removes the copies that the directory was restored from, until the app stops. Not set for the disk of a node. */
  readonly onDelivered?: (signal: AbortSignal) => Promise<void>
  readonly startIngest: (config: Config, hooks: IngestHooks) => Promise<AdoptedIngest>
  readonly startDelivery: (config: Config, hooks: Hooks) => Promise<App & { backlog(): Backlog }>
}

/** `stopping` ends a start that waits for control: then it rejects with its reason. */
export async function startAdoption(options: AdoptionOptions, stopping: AbortSignal): Promise<App> {
  const { config, directory, isRegionGiven, startIngest, startDelivery, onDelivered, logger, clock } = options
  const adopted = await adoptedConfig(config, directory)
  if (
    config.controlUrl !== null &&
    !isRegionGiven &&
    (await readTrimmed(system.files, adopted.paths.nodeCredential)) === undefined
  )
    throw new UserError(
      `--region: needed to adopt ${directory}: the credential of its node is lost, so the node joins again; inlet nodes list shows its region`,
    )
  await adoptWal(adopted.paths, system, logger)
  const ownId = await readTrimmed(system.files, config.paths.nodeId)
  const isOnDisk = onDelivered === undefined
  const receiver = ownId === undefined ? undefined : { directory: config.paths.adoptedRequests, nodeId: ownId, isOnDisk }
  const ingest = await startIngest(adopted, { logger, clock, stopping, receiver })
  const delivery = await startDelivery(adopted, { logger, clock }).catch(async (error: unknown) => {
    // It would send heartbeats in the name of the node, and lock its directory, so nobody could deliver it.
    await ingest.stop(AbortSignal.abort())
    throw error
  })
  const finished = Promise.withResolvers<number>()
  let isRefused = false
  void ingest.refused.then(() => {
    isRefused = true
    finished.resolve(1)
  })
  let printed = ''
  let printedAt = Number.NEGATIVE_INFINITY
  const check = async (stopped: AbortSignal) => {
    const progress = progressOf(delivery.backlog())
    const { segments, bytes, reasons, forPerson } = progress
    if (progress.isDone && ingest.hasHandedOver()) {
      if (forPerson > 0)
        logger.error(
          { segments: forPerson, bytes, reasons },
          `what is left needs a person: INLET_DATA_DIR=${adopted.paths.data} inlet segments`,
        )
      else {
        await onDelivered?.(stopped)
        const wait = `after ${nodeLimits.healthySeconds} seconds`
        // A takeover of copies removes its directory by itself.
        const next =
          onDelivered === undefined ? `the directory can be removed, and ${wait} the node` : `${wait} the node can be removed`
        logger.notice(`nothing is left: ${next}, with inlet nodes remove`)
      }
      finished.resolve(forPerson > 0 ? 1 : 0)
    } else if (JSON.stringify(progress) !== printed && clock.monotonic() - printedAt >= reportMs) {
      printed = JSON.stringify(progress)
      printedAt = clock.monotonic()
      logger.notice({ segments, bytes, reasons }, 'delivering the adopted log')
    }
  }
  const checks = new Periodic({
    name: 'adoption',
    intervalMs: checkMs,
    run: check,
    failure: 'checking the adopted log failed',
    clock,
    logger,
  })
  await checks.start()
  return {
    finished: finished.promise,
    async stop(signal) {
      await checks.stop()
      // Waiting would change nothing: control takes nothing from here.
      const deadline = isRefused ? AbortSignal.abort() : signal
      try {
        await ingest.stop(deadline)
      } finally {
        await delivery.stop(deadline)
      }
    },
  }
}
