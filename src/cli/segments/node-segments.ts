/**
 * Every segment on the disk of this node, with its owner and why it is still there.
 *
 * Owns: what the commands know about a segment. Does not own: changing one.
 * Law: reads only, takes no lock, and tolerates what running processes rename or remove meanwhile. What cannot be read is a problem in the
 * result, never a reason to leave out the rest.
 */

import type { Config } from '#config/config.ts'
import { type Parked, ParkedSegments } from '#delivery/segments/parked-segments.ts'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode, systemFiles } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { scanSegment } from '#log/local/read/segment-scan.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { commitId } from '#model/commit.ts'
import { readBlocked } from '#node/blocked-file.ts'
import { OutboxFiles } from '#node/outbox-files.ts'
import { type Owner, readOwners, unowned } from './owners.ts'

export type NodeSegment = {
  /** `<log>/<seq>-<incarnation>` */
  readonly name: string
  readonly log: string
  readonly seq: number
  readonly incarnation: string
  readonly state: 'open' | 'sealed' | 'parked' | 'quarantined'
  /** The id of the endpoint, or `none: ` and why. */
  readonly owner: string
  /** Null unless the file has an intact footer. */
  readonly records: number | null
  readonly bytes: number
  /** When it was sealed, or created if it has no footer; null if its header is damaged. */
  readonly since: string | null
  /** Why it is still on this node. */
  readonly reason: string
  readonly path: string
}

export type NodeSegments = {
  /** By log, then seq. */
  readonly segments: readonly NodeSegment[]
  /** Files and directories that could not be read. */
  readonly problems: readonly string[]
}

/** The reason of a segment while the delivery process does not run. */
export const deliveryIsDown = 'delivery does not run'

type SegmentFile = Awaited<ReturnType<LocalSegmentSource['list']>>[number]

/** Facts of this node that explain why a segment is still on its disk. */
type Facts = {
  readonly nodeId: string
  readonly parked: ReadonlyMap<string, Parked>
  /** Ids of commits that wait for control. */
  readonly reported: ReadonlySet<string>
  /** Reasons by log; undefined if the process does not run. */
  readonly blocked: Readonly<Record<'ingest' | 'delivery', ReadonlyMap<string, string> | undefined>>
  readonly ownerOf: (log: string) => Owner
}

export type ReadOptions = {
  readonly clock: Clock
  readonly logger: Logger
  /** Reads only this log. */
  readonly log?: string
}

export async function readNodeSegments(config: Config, { clock, logger, log: only }: ReadOptions): Promise<NodeSegments> {
  const { paths } = config
  const files = systemFiles
  const directory = new LocalSegmentSource({ directory: paths.wal, files, clock })
  const segments: NodeSegment[] = []
  const problems: string[] = []
  const found: SegmentFile[] = []
  for (const log of await directory.logNames()) {
    if (only !== undefined && log !== only) continue
    try {
      found.push(...(await directory.readLog(log)).segments)
    } catch (error) {
      problems.push(`${log}: ${errorMessage(error)}`)
    }
  }
  // Read after the listing, so that a segment that was delivered or parked meanwhile is not said to wait.
  const outbox = await new OutboxFiles({ directory: paths.outbox, files }).list()
  const facts: Facts = {
    nodeId: Buffer.from((await files.read(paths.nodeId)) ?? [])
      .toString('utf8')
      .trim(),
    parked: await new ParkedSegments({ directory: paths.parked, files, clock }).read(),
    reported: new Set(outbox.map(({ id }) => id)),
    blocked: {
      ingest: await readBlocked(files, paths.ingestBlocked, clock),
      delivery: await readBlocked(files, paths.deliveryBlocked, clock),
    },
    ownerOf: await readOwners(config, files, logger),
  }
  for (const file of found) {
    try {
      segments.push(await describeSegment(file, directory, facts))
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') problems.push(`${file.path}: ${errorMessage(error)}`)
    }
  }
  return { segments, problems }
}

async function describeSegment(file: SegmentFile, directory: LocalSegmentSource, facts: Facts): Promise<NodeSegment> {
  const { logName: log, seq, incarnation, bytes, path } = file
  const id = commitId(facts.nodeId, incarnation, seq)
  const parked = file.state === 'sealed' ? facts.parked.get(id) : undefined
  const owner = facts.ownerOf(log)
  return {
    name: `${log}/${seq}-${incarnation}`,
    ...{ log, seq, incarnation, bytes, path },
    state: parked === undefined ? file.state : 'parked',
    owner: owner.text,
    ...(await readFooterOrHeader(file, directory)),
    reason:
      parked?.reason ??
      (file.state === 'quarantined' ? await explainQuarantine(file, directory) : explain(file, id, owner, facts)),
  }
}

function explain({ state, logName }: SegmentFile, id: string, owner: Owner, { reported, blocked }: Facts): string {
  if (state === 'open')
    return blocked.ingest?.get(logName) ?? (blocked.ingest === undefined ? 'ingest does not run' : 'being written')
  if (owner.text === unowned)
    return `no endpoint owns this log; to deliver it: inlet segments deliver ${logName} --destination ID`
  if (blocked.delivery === undefined) return deliveryIsDown
  const reason = blocked.delivery.get(logName)
  // Delivery writes its reasons every two seconds, so this one may be older than the assignment.
  if (reason !== undefined && !(owner.isAssigned && reason.startsWith('no endpoint owns'))) return reason
  if (reported.has(id)) return 'delivered; its commit waits for control'
  return owner.endpoint?.destination === null && !owner.isAssigned
    ? 'no destination is bound to the endpoint'
    : 'waits for delivery'
}

async function explainQuarantine(file: SegmentFile, directory: LocalSegmentSource): Promise<string> {
  const note = await directory.quarantineNote(file)
  if (note === undefined) return 'damaged; what is damaged was not recorded'
  const { reason, records_lost: lost } = note
  return lost === 0 ? reason : `${reason}; at least ${lost} records are lost`
}

async function readFooterOrHeader(
  file: SegmentFile,
  directory: LocalSegmentSource,
): Promise<Pick<NodeSegment, 'records' | 'since'>> {
  try {
    if (file.state === 'sealed') {
      const reader = await directory.open(file)
      await reader.close()
      return { records: reader.footer.records, since: isoTimestamp(Math.floor(reader.footer.sealedAtMicros / 1000)) }
    }
    const scan = await scanSegment(systemFiles, file.path)
    await scan.close()
    const { createdAtMicros } = scan.header
    return { records: null, since: createdAtMicros === undefined ? null : isoTimestamp(Math.floor(createdAtMicros / 1000)) }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw error
    return { records: null, since: null }
  }
}
