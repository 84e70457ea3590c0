/** `inlet segments list`: every segment on this node's disk, and why it is still there. */
import { countNoun } from '#lib/count-noun.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { CliContext } from '../terminal/context.ts'
import { toTable } from '../terminal/table.ts'
import { formatAge, formatBytes } from './format.ts'
import { type NodeSegment, readNodeSegments } from './node-segments.ts'

export type ListFlags = { readonly json: boolean }

/** The exit code is 1 if something on the disk could not be read. */
export async function listNodeSegments(this: CliContext, { json }: ListFlags): Promise<void> {
  const { stdout } = this.process
  const logger = createLogger('segments', 'silent')
  const { segments, problems } = await readNodeSegments(await this.readConfig(), { clock: this.clock, logger })
  if (json) stdout.write(`${JSON.stringify({ segments, problems, totals: totals(segments) }, null, 1)}\n`)
  else {
    for (const [, ofLog] of Map.groupBy(segments, ({ log }) => log)) stdout.write(describeLog(ofLog, this.clock.now()))
    stdout.write(describeTotals(segments))
    for (const problem of problems) stdout.write(`  could not be read: ${problem}\n`)
  }
  if (problems.length > 0) this.process.exitCode = 1
}

function describeLog(segments: readonly NodeSegment[], now: number): string {
  const [first] = segments
  const rows = segments.map(({ name, state, records, bytes, since, reason }) => [
    ...[`  ${name}`, state, records === null ? '·' : `${records}`, formatBytes(bytes)],
    ...[since === null ? '·' : formatAge(now - Date.parse(since)), reason.replaceAll(/\s+/g, ' ')],
  ])
  const owner = first?.owner === first?.log ? `endpoint ${first?.log}` : `log ${first?.log}, owner ${first?.owner}`
  return `${owner}\n${toTable([['  SEGMENT', 'STATE', 'RECORDS', 'SIZE', 'AGE', 'REASON'], ...rows])}\n`
}

type Total = { segments: number; records: number; bytes: number }

/** Records are counted where they are known. */
function totals(segments: readonly NodeSegment[]): Readonly<Record<NodeSegment['state'] | 'unowned' | 'all', Total>> {
  const sum = (some: readonly NodeSegment[]): Total => ({
    segments: some.length,
    records: some.reduce((total, { records }) => total + (records ?? 0), 0),
    bytes: some.reduce((total, { bytes }) => total + bytes, 0),
  })
  const inState = (state: NodeSegment['state']) => sum(segments.filter((segment) => segment.state === state))
  return {
    open: inState('open'),
    sealed: inState('sealed'),
    parked: inState('parked'),
    quarantined: inState('quarantined'),
    unowned: sum(segments.filter(({ log, owner }) => owner !== log)),
    all: sum(segments),
  }
}

function describeTotals(segments: readonly NodeSegment[]): string {
  if (segments.length === 0) return 'There are no segments on this node.\n'
  const { all, unowned, ...states } = totals(segments)
  const named = Object.entries({ ...states, 'without an owner': unowned }).filter(([, { segments: count }]) => count > 0)
  const parts = named.map(([name, { segments: count, bytes }]) => `${count} ${name} (${formatBytes(bytes)})`)
  return `${countNoun(all.segments, 'segment')}, ${formatBytes(all.bytes)}: ${parts.join(', ')}\n`
}
