/** `inlet segments retry` and `quarantine`: has parked segments converted again, or gives them up and keeps their files. */
import { join } from 'node:path'
import type { Config } from '#config/config.ts'
import { countNoun } from '#lib/count-noun.ts'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { commitId } from '#model/commit.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { type JsonFlags, printJson, printResult } from '../terminal/print-json.ts'
import { selectSegments } from './names.ts'
import { type NodeSegment, readNodeSegments } from './node-segments.ts'

export type RetryFlags = JsonFlags & { readonly all: boolean }

export async function retryParkedSegments(
  this: CliContext,
  { all, json }: RetryFlags,
  ...names: readonly string[]
): Promise<void> {
  if (all === names.length > 0) throw new UsageError('name segments or logs, or use --all')
  const config = await this.readConfig()
  const parked = await selectParked(this, config, all ? undefined : names)
  for (const segment of parked) await unpark(segment, config)
  printResult(
    this,
    { json },
    parked.map(({ name }) => ({ segment: name })),
    `${countNoun(parked.length, 'segment')} will be converted again; a running delivery process begins at once\n`,
  )
}

export async function quarantineParkedSegments(
  this: CliContext,
  { json }: JsonFlags,
  ...names: readonly string[]
): Promise<void> {
  const config = await this.readConfig()
  const parked = await selectParked(this, config, names)
  const directory = new LocalSegmentSource({ directory: config.paths.wal, files: systemFiles, clock: this.clock })
  const kept: { readonly segment: string; readonly path: string }[] = []
  for (const segment of parked) {
    const { log: logName, seq, incarnation, reason } = segment
    // First: a crash in between must not lead to another conversion.
    const path = await directory.quarantine({ logName, seq, incarnation }, `set aside by the operator: ${reason}`)
    await unpark(segment, config)
    kept.push({ segment: segment.name, path })
    if (!json) this.process.stdout.write(`${segment.name} is kept in ${path}\n`)
  }
  if (json) printJson(this, kept)
}

/** Returns the parked segments among the named ones, or all of them. */
async function selectParked(
  { clock }: CliContext,
  config: Config,
  names: readonly string[] | undefined,
): Promise<readonly NodeSegment[]> {
  const { segments } = await readNodeSegments(config, { clock, logger: createLogger('segments', 'silent') })
  const selected = names === undefined ? segments : selectSegments(segments, names)
  const parked = selected.filter(({ state }) => state === 'parked')
  const [other] = selected
  if (parked.length === 0 && names !== undefined && other !== undefined)
    throw new UserError(`${other.name} is ${other.state}, not parked`)
  return parked
}

async function unpark({ incarnation, seq }: NodeSegment, { paths }: Config): Promise<void> {
  const id = commitId(await readOrCreateNodeId(paths, system), incarnation, seq)
  await systemFiles.remove(join(paths.parked, `${id}.parked.json`))
}
