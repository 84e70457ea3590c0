/** `inlet segments discard`: removes segments that are parked, quarantined or without an owner, for good. */
import { join } from 'node:path'
import type { Config } from '#config/config.ts'
import { MiB } from '#lib/bytes.ts'
import { countNoun } from '#lib/count-noun.ts'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { scanSegment } from '#log/local/read/segment-scan.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { SegmentError } from '#log/segment-error.ts'
import { commitId } from '#model/commit.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import type { CliContext } from '../terminal/context.ts'
import { type JsonFlags, printJson, printResult } from '../terminal/print-json.ts'
import { formatBytes } from './format.ts'
import { selectSegments } from './names.ts'
import { type NodeSegment, readNodeSegments } from './node-segments.ts'
import { unowned } from './owners.ts'

const bufferBytes = 4 * MiB

export type DiscardFlags = JsonFlags & { readonly yes: boolean }

/** Without `--yes` it only says what would be removed, and the exit code is 1. */
export async function discardSegments(this: CliContext, { yes, json }: DiscardFlags, ...names: readonly string[]): Promise<void> {
  const { stdout } = this.process
  const config = await this.readConfig()
  const { segments } = await readNodeSegments(config, { clock: this.clock, logger: createLogger('segments', 'silent') })
  const selected = selectSegments(segments, names)
  const chosen = selected.filter(mayBeDiscarded)
  const [other] = selected
  if (chosen.length === 0 && other !== undefined) {
    throw new UserError(
      `${other.name} is ${other.state}: only parked and quarantined segments can be discarded, and sealed ones that no endpoint owns`,
    )
  }
  const found: { readonly segment: string; readonly state: string; readonly records: number; readonly bytes: number }[] = []
  for (const { name, state, records, bytes, path } of chosen) {
    const readable = records ?? (await countIntact(path))
    found.push({ segment: name, state, records: readable, bytes })
    const count = records === null ? `${readable} records that can be read` : `${records} records`
    if (!json) stdout.write(`${name}  ${state}  ${count}, ${formatBytes(bytes)}\n`)
  }
  if (!yes && json) printJson(this, { discarded: false, segments: found })
  if (!yes) throw new UserError('nothing was removed; to remove these segments for good, repeat the command with --yes')
  const nodeId = await readOrCreateNodeId(config.paths, system)
  for (const segment of chosen) await discard(segment, config, nodeId)
  printResult(this, { json }, { discarded: true, segments: found }, `${countNoun(chosen.length, 'segment')} discarded\n`)
}

function mayBeDiscarded({ state, owner }: NodeSegment): boolean {
  return state === 'parked' || state === 'quarantined' || (state === 'sealed' && owner === unowned)
}

/** The file goes first: after a crash in between, a parked segment must not be converted again. */
async function discard(segment: NodeSegment, { paths }: Config, nodeId: string): Promise<void> {
  const { log: logName, incarnation, seq, state } = segment
  await new LocalSegmentSource({ ...system, directory: paths.wal }).discard(
    { logName, incarnation, seq },
    state === 'quarantined' ? 'quarantined' : 'sealed',
  )
  if (state === 'parked') await systemFiles.remove(join(paths.parked, `${commitId(nodeId, incarnation, seq)}.parked.json`))
}

async function countIntact(path: string): Promise<number> {
  let records = 0
  try {
    const scan = await scanSegment(systemFiles, path)
    try {
      for await (const frames of scan.frames(bufferBytes)) for (const { recordCount } of frames) records += recordCount
    } finally {
      await scan.close()
    }
  } catch (error) {
    if (!(error instanceof SegmentError)) throw error
  }
  return records
}
