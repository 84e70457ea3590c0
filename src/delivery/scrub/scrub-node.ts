/**
 * Verifies what is on the disk of this node and is not in a bucket yet.
 *
 * Law: reads only. A file that a running process delivers or removes meanwhile is no finding.
 */
import { errorMessage } from '#lib/error-message.ts'
import { errorCode } from '#lib/files.ts'
import { SegmentError } from '#log/segment-error.ts'
import type { Segment, SegmentSource } from '#log/segment-source.ts'
import type { Finding, FindingKind } from '#model/scrub.ts'
import type { OutboxFiles } from '#node/outbox-files.ts'
import { emptyFileAdvice, nextStepOf } from './advice.ts'
import { scrubLimits } from './limits.ts'

export type ScrubNodeOptions = {
  readonly segments: Pick<SegmentSource, 'logNames' | 'readLog' | 'open' | 'quarantineNote' | 'highestSeq'>
  readonly outbox: Pick<OutboxFiles, 'list' | 'read'>
  /** Reads no other segments than those that these are about. */
  readonly only?: readonly Finding[]
  /** Called with the size of each part that was read. */
  readonly onRead: (bytes: number) => Promise<void> | void
  readonly onFinding: (finding: Finding) => void
  readonly signal: AbortSignal
}

export type NodeTally = { segments: number; reports: number }

/** Throws only the signal's reason: what cannot be read is a finding. */
export async function scrubNode(options: ScrubNodeOptions): Promise<NodeTally> {
  const { segments, signal, onFinding, only } = options
  const wanted = only && new Set(only.map(({ where }) => where))
  const tally: NodeTally = { segments: 0, reports: 0 }
  await orUnreadable(options, null, 'wal', async () => {
    for (const logName of await segments.logNames())
      await orUnreadable(options, logName, logName, async () => {
        const { problem } = await segments.highestSeq(logName)
        if (problem !== undefined) onFinding(finding('unreadable', logName, `${logName}/high-water`, problem))
        for (const segment of (await segments.readLog(logName)).segments) {
          signal.throwIfAborted()
          if (segment.state === 'open') continue
          tally.segments += 1
          if (segment.state === 'quarantined') await reportQuarantined(options, segment)
          else if (wanted?.has(nameOf(segment)) !== false) await verifySealed(options, segment)
        }
      })
  })
  await orUnreadable(options, null, 'outbox', () => verifyReports(options, tally))
  return tally
}

async function verifySealed({ segments, onRead, onFinding, signal }: ScrubNodeOptions, segment: Segment): Promise<void> {
  const where = nameOf(segment)
  try {
    const reader = await segments.open(segment)
    try {
      for await (const frames of reader.frames(scrubLimits.scanBufferBytes)) {
        await onRead(frames.reduce((sum, { payload }) => sum + payload.byteLength, 0))
        signal.throwIfAborted()
      }
    } finally {
      await reader.close()
    }
  } catch (error) {
    signal.throwIfAborted()
    if (errorCode(error) === 'ENOENT') return
    if (error instanceof SegmentError)
      onFinding(finding('segment_damaged', segment.logName, where, error.message.slice(error.path.length + 2)))
    else onFinding(finding('unreadable', segment.logName, where, `cannot be read (${reasonOf(error)})`))
  }
}

async function reportQuarantined({ segments, onFinding }: ScrubNodeOptions, segment: Segment): Promise<void> {
  const note = await segments.quarantineNote(segment)
  const lost = note === undefined || note.records_lost === 0 ? '' : `; at least ${note.records_lost} records are lost`
  const message = `a damaged segment was kept: ${note?.reason ?? 'what is damaged was not recorded'}${lost}`
  const found = finding('segment_quarantined', segment.logName, nameOf(segment), message)
  onFinding(segment.bytes === 0 ? { ...found, next_step: emptyFileAdvice } : found)
}

async function verifyReports(options: ScrubNodeOptions, tally: NodeTally): Promise<void> {
  const { outbox, onFinding } = options
  for (const entry of await outbox.list()) {
    const where = `outbox/${entry.endpoint_id}.${entry.id}.json`
    await orUnreadable(options, entry.endpoint_id, where, async () => {
      tally.reports += 1
      const found = await outbox.read(entry)
      // Sent and removed meanwhile.
      if (typeof found !== 'string' || found === 'the file is missing') return
      onFinding(finding('report_damaged', entry.endpoint_id, where, `the report of a commit is damaged: ${found}`))
    })
  }
}

async function orUnreadable(
  { onFinding, signal }: ScrubNodeOptions,
  endpointId: string | null,
  where: string,
  read: () => Promise<void>,
): Promise<void> {
  try {
    await read()
  } catch (error) {
    signal.throwIfAborted()
    onFinding(finding('unreadable', endpointId, where, `cannot be read (${reasonOf(error)})`))
  }
}

/** As `inlet segments` names it. Owners of endpoints see findings, so they have no path of this machine. */
function nameOf({ logName, seq, incarnation }: Segment): string {
  return `${logName}/${seq}-${incarnation}`
}

function reasonOf(error: unknown): string {
  return errorCode(error) ?? errorMessage(error)
}

function finding(kind: FindingKind, endpoint_id: string | null, where: string, message: string): Finding {
  return { kind, endpoint_id, where, message, next_step: nextStepOf(kind) }
}
