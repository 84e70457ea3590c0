/**
 * Tells control what is on this disk, once this node was removed, or another machine has its place: it may be nowhere else.
 *
 * Owns: when this is said, and the counts. Does not own: what of it is delivered, which control knows.
 * Law: nothing is said while control accepts this node.
 */
import type { Clock } from '#lib/clock.ts'
import { inParallel } from '#lib/in-parallel.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Logger } from '#lib/telemetry.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Segment, SegmentSource } from '#log/segment-source.ts'
import { type LeftSegments, leftSegmentsMax } from '#model/left-on-disk.ts'
import type { Control } from '#node/control-client.ts'
import type { NodeFence } from '#node/node-fence.ts'

/** Ingest seals its segments within this time after it has learned of its end. */
const intervalMs = 5_000
const openedParallel = 8

export type LeftOnDiskOptions = {
  readonly nodeId: string
  readonly control: Pick<Control, 'reportLeftOnDisk'>
  readonly fence: Pick<NodeFence, 'isGivenUp'>
  readonly segments: Pick<SegmentSource, 'logNames' | 'readLog' | 'open' | 'openRecords' | 'quarantineNote'>
  readonly clock: Clock
  readonly logger: Logger
}

/** Returns a service that says it at first, and whenever it is something else, in as many reports as it takes. */
export function leftOnDiskReport({ nodeId: node_id, control, fence, segments, clock, logger }: LeftOnDiskOptions): Periodic {
  const said: string[] = []
  return new Periodic({
    name: 'report of what is left on the disk',
    intervalMs,
    async run(signal) {
      if (!fence.isGivenUp) return
      const left = await listLeft(segments)
      for (let at = 0; at * leftSegmentsMax < Math.max(1, left.length); at += 1) {
        const some = left.slice(at * leftSegmentsMax, (at + 1) * leftSegmentsMax)
        const report = JSON.stringify(some)
        if (report === said[at]) continue
        const { losses } = await control.reportLeftOnDisk({ node_id, segments: some }, signal)
        said[at] = report
        if (losses > 0)
          logger.error(
            { endpoints: losses, next: 'see docs/fencing.md' },
            'this disk has acknowledged records that are nowhere else',
          )
      }
    },
    failure: 'control not told what is left on this disk',
    recovery: 'control told what is left on this disk',
    level: 'warn',
    clock,
    logger,
  })
}

/** Returns all segments with their records, by log and seq. */
async function listLeft(source: LeftOnDiskOptions['segments']): Promise<readonly LeftSegments[]> {
  const open = new Map((await source.openRecords())?.map(({ records, ...ref }) => [nameOf(ref), records]))
  const left: LeftSegments[] = []
  for (const logName of (await source.logNames()).filter(isUuid)) {
    const { segments } = await source.readLog(logName)
    const counted = segments.map((segment) => ({ segment, left: toLeft(segment, open.get(nameOf(segment)) ?? 0) }))
    const complete = counted.filter(({ segment }) => segment.state !== 'open')
    await inParallel(openedParallel, complete, async (each) => {
      each.left = await count(source, each.segment)
    })
    left.push(...counted.flatMap((each) => each.left ?? []))
  }
  return left
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
