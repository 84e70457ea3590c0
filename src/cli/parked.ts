/** `inlet parked`: lists, retries or skips segments whose conversion keeps failing. */
import { join } from 'node:path'
import { listParked } from '#delivery/crash-ledger.ts'
import { systemFiles } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'
import { commitId } from '#model/commit.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { SegmentDirectory } from '#wal/segment-directory.ts'
import { type CliContext, UsageError } from './context.ts'

export async function listParkedSegments(this: CliContext): Promise<void> {
  const { paths } = await this.readConfig()
  const parked = await listParked(systemFiles, paths.crashLedger)
  const lines = [...parked].map(([id, { reason, at }]) => `${id}  parked ${at}  ${reason}`)
  this.process.stdout.write(`${lines.length === 0 ? 'no segments are parked' : lines.join('\n')}\n`)
}

export async function retryParkedSegments(this: CliContext, { all }: { readonly all: boolean }, id?: string): Promise<void> {
  if (all === (id !== undefined)) throw new UsageError('name one segment, or use --all')
  const { paths } = await this.readConfig()
  const ids = id === undefined ? [...(await listParked(systemFiles, paths.crashLedger)).keys()] : [id]
  for (const each of ids) await unpark(this, each)
  this.process.stdout.write(ids.length === 1 ? 'the segment will be retried\n' : `${ids.length} segments will be retried\n`)
}

export async function skipParkedSegment(this: CliContext, _flags: object, id: string): Promise<void> {
  const { paths } = await this.readConfig()
  const nodeId = await readOrCreateNodeId(paths)
  const segments = new SegmentDirectory({ directory: paths.wal, files: systemFiles })
  await unpark(this, id, async () => {
    const segment = (await segments.list()).find(
      ({ incarnation, seq, state }) => state === 'sealed' && commitId(nodeId, incarnation, seq) === id,
    )
    if (segment !== undefined) this.process.stdout.write(`skipped; its records stay in ${await segments.quarantine(segment)}\n`)
  })
}

/** Runs `before`, then unparks the segment. A crash in between must not lead to another conversion. */
async function unpark(context: CliContext, id: string, before?: () => Promise<void>): Promise<void> {
  const { paths } = await context.readConfig()
  if (!(await listParked(systemFiles, paths.crashLedger)).has(id)) {
    throw new UserError(`segment ${id} is not parked; list parked segments with: inlet parked list`)
  }
  await before?.()
  await systemFiles.remove(join(paths.crashLedger, `${id}.parked.json`))
}
