/**
 * Tells control what is on this disk, once this node was removed, or another machine has its place: it may be nowhere else.
 *
 * Owns: when this is said, and the counts. Does not own: what of it is delivered, which control knows.
 * Law: nothing is said while control accepts this node. A log that cannot be listed keeps back no other one.
 */
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { inParallel } from '#lib/in-parallel.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Segment, SegmentSource } from '#log/segment-source.ts'
import { type LeftSegments, leftSegmentsMax } from '#model/left-on-disk.ts'
import type { Control } from '#node/control-client.ts'
import type { NodeFence } from '#node/node-fence.ts'

/** Ingest seals its segments within this time after it has learned of its end. */
const intervalMs = 5_000
const openedParallel = 8
/** The supervisor waits longer for a process. */
const lastReportMs = 3_000
const failureMessage = 'control not told what is left on this disk'

export type LeftOnDiskOptions = {
  readonly nodeId: string
  readonly control: Pick<Control, 'reportLeftOnDisk'>
  readonly fence: Pick<NodeFence, 'isGivenUp' | 'reload'>
  readonly segments: Pick<SegmentSource, 'logNames' | 'readLog' | 'open' | 'openRecords' | 'quarantineNote'>
  readonly clock: Clock
  readonly logger: Logger
}

/** Says it at first, and whenever it is something else, in as many reports as it takes; and a last time when it stops. */
export class LeftOnDiskReport implements Service {
  readonly name = 'report of what is left on the disk'
  readonly #options: LeftOnDiskOptions
  readonly #periodic: Periodic
  readonly #said: string[] = []

  constructor(options: LeftOnDiskOptions) {
    const { clock, logger } = options
    this.#options = options
    this.#periodic = new Periodic({
      ...{ name: this.name, intervalMs, clock, logger },
      run: (signal) => this.#report(signal),
      failure: failureMessage,
      recovery: 'control told what is left on this disk',
      level: 'warn',
    })
  }

  start(): Promise<void> {
    return this.#periodic.start()
  }

  runNow(): void {
    this.#periodic.runNow()
  }

  /** Delivery has stopped before: nothing that is said is delivered after it. */
  async stop(): Promise<void> {
    await this.#periodic.stop()
    const { fence, clock, logger } = this.#options
    try {
      // Ingest may have learned of it, and delivery had nothing to ask control for since.
      await fence.reload()
      await this.#report(clock.timeout(lastReportMs))
    } catch (error) {
      logger.warn({ reason: errorMessage(error), next: 'start the node again: it tells control then' }, failureMessage)
    }
  }

  async #report(signal: AbortSignal): Promise<void> {
    const { nodeId: node_id, control, fence, segments, logger } = this.#options
    if (!fence.isGivenUp) return
    const { left, problem } = await listLeft(segments)
    for (let at = 0; at * leftSegmentsMax < Math.max(1, left.length); at += 1) {
      const some = left.slice(at * leftSegmentsMax, (at + 1) * leftSegmentsMax)
      const report = JSON.stringify(some)
      if (report === this.#said[at]) continue
      const { losses } = await control.reportLeftOnDisk({ node_id, segments: some }, signal)
      this.#said[at] = report
      if (losses > 0)
        logger.error(
          { endpoints: losses, next: 'see docs/fencing.md' },
          'this disk has acknowledged records that are nowhere else',
        )
    }
    if (problem !== undefined) throw problem
  }
}

/** Returns all segments with their records, by log and seq, and why some logs cannot be listed. */
async function listLeft(
  source: LeftOnDiskOptions['segments'],
): Promise<{ readonly left: readonly LeftSegments[]; readonly problem: Error | undefined }> {
  const listed = await source.openRecords().catch(() => undefined)
  const open = new Map(listed?.segments.map(({ records, ...ref }) => [nameOf(ref), records]))
  const left: LeftSegments[] = []
  let problem: Error | undefined
  for (const logName of (await source.logNames()).filter(isUuid)) {
    const listing = await source.readLog(logName).catch((error: unknown) => {
      problem ??= new Error(`log ${logName} cannot be listed: ${errorMessage(error)}`)
    })
    const segments = listing?.segments ?? []
    // One that is not on the list may have records: ingest writes it each second.
    const counted = segments.map((segment) => ({ segment, left: toLeft(segment, open.get(nameOf(segment)) ?? null) }))
    const complete = counted.filter(({ segment }) => segment.state !== 'open')
    await inParallel(openedParallel, complete, async (each) => {
      each.left = await count(source, each.segment)
    })
    left.push(...counted.flatMap((each) => each.left ?? []))
  }
  return { left, problem }
}

/** Returns undefined for a damaged original: its intact frames are a segment of their own. */
async function count(source: LeftOnDiskOptions['segments'], segment: Segment): Promise<LeftSegments | undefined> {
  const note = segment.state === 'quarantined' ? await source.quarantineNote(segment) : undefined
  if (note !== undefined && note.damage.length > 0) return undefined
  try {
    const opened = await source.open(segment)
    await opened.close()
    return toLeft(segment, opened.footer.records)
  } catch {
    return toLeft(segment, null)
  }
}

function toLeft({ logName, seq, bytes }: Segment, records: number | null): LeftSegments | undefined {
  return { endpoint_id: logName, first_seq: seq, last_seq: seq, segments: 1, records, bytes }
}

function nameOf({ logName, seq, incarnation }: Pick<Segment, 'logName' | 'seq' | 'incarnation'>): string {
  return `${logName}/${seq}-${incarnation}`
}
