import type { Config } from '#config/config.ts'
import { errorMessage } from '#lib/error-message.ts'
import { system } from '#lib/system.ts'
import { dayMs } from '#lib/time-units.ts'
import { UserError } from '#lib/user-error.ts'
import { Id } from '#model/id.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { openObjectStores } from '#objects/open.ts'
import { hasCommitsIn, listMarkerFolders, type MarkerFolder } from '#store/commits/marker-folders.ts'
import { clearMissingCommits, listMissingCommits } from '#store/commits/missing-commits.ts'
import type { Store } from '#store/store.ts'
import { audited } from '../operator/audited.ts'
import { openCommandStore } from '../operator/store.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { type JsonFlags, printResult } from '../terminal/print-json.ts'
import { Progress } from '../terminal/progress.ts'
import { countMarkers, rebuildFolder, type Tally } from './rebuild.ts'

const problemLinesMax = 100

export type RebuildFlags = JsonFlags & {
  readonly endpoint?: string
  readonly destination?: string
  readonly dryRun: boolean
  readonly skipUnreadable: boolean
}

const stillMissing = `Commits may still be missing, and jobs wait: run this again when the buckets can be read.
If one is gone for good, delete its destination, or go on without it: inlet commits rebuild --skip-unreadable
`

export async function rebuildCommits(this: CliContext, flags: RebuildFlags): Promise<void> {
  const filter = { endpoint_id: id('endpoint', flags.endpoint), destination_id: id('destination', flags.destination) }
  await using store = await openCommandStore(this)
  const folders = await listMarkerFolders(store.db, filter)
  const isFiltered = filter.endpoint_id !== undefined || filter.destination_id !== undefined
  if (folders.length === 0 && isFiltered) throw new UserError('no endpoint and destination in this database match these options')
  const config = await this.readConfig()
  const { stores, close } = await openObjectStores(config, { ...system, clock: this.clock })
  try {
    const what = {
      operation: 'rebuildCommits',
      account_id: null,
      resource_id: filter.endpoint_id ?? filter.destination_id ?? null,
    }
    const missing = await listMissingCommits(store.db)
    const { isComplete, allRead } = await audited(store, this.clock, what, () =>
      rebuild(this, store, folders, flags, stores, config),
    )
    const isWhole = !isFiltered && !flags.dryRun
    if (isWhole && (allRead || flags.skipUnreadable)) await clearMissingCommits(store.db, missing)
    else if (isWhole && missing.length > 0) this.process.stderr.write(stillMissing)
    if (!isComplete) this.process.exitCode = 1
  } finally {
    close()
  }
}

function id(option: string, text: string | undefined): string | undefined {
  const { data } = Id.safeParse(text)
  if (text === undefined || data !== undefined) return data
  throw new UsageError(`--${option}: must be an id, not ${JSON.stringify(text)}`)
}

/** Returns whether every marker was recorded, and whether all buckets were read: what is rejected was not lost. */
async function rebuild(
  context: CliContext,
  store: Store,
  folders: readonly MarkerFolder[],
  { dryRun, json }: Pick<RebuildFlags, 'dryRun' | 'json'>,
  stores: ObjectStores,
  { commitsKeptDays }: Pick<Config, 'commitsKeptDays'>,
): Promise<{ readonly isComplete: boolean; readonly allRead: boolean }> {
  // With --json, standard output has only the result.
  const output = json ? context.process.stderr : context.process.stdout
  const now = () => context.clock.now()
  const tally: Tally = { recorded: 0, known: 0, expired: 0, rejected: 0 }
  const problems: string[] = []
  const unreadable = new Set<string>()
  const empty = new Set<string>()
  const reportUnreadable = ({ id, bucket }: MarkerFolder['target'], error: unknown) => {
    unreadable.add(id)
    problems.push(`reading bucket ${bucket} failed: ${errorMessage(error)}`)
  }
  // The other folders of the bucket may be whole.
  const reportEmpty = ({ endpoint_id, target: { id, bucket } }: MarkerFolder) => {
    empty.add(id)
    problems.push(`bucket ${bucket} has no marker of endpoint ${endpoint_id}, which delivered to it: is its disk mounted?`)
  }
  const counted: { readonly folder: MarkerFolder; readonly markers: number }[] = []
  output.write(`searching markers of ${new Set(folders.map(({ endpoint_id }) => endpoint_id)).size} endpoints …\n`)
  for (const folder of folders) {
    // A bucket that failed for one endpoint would fail for the others.
    if (unreadable.has(folder.target.id)) continue
    try {
      const markers = await countMarkers(stores.open(folder.target), folder)
      if (markers > 0) counted.push({ folder, markers })
      else if (await hasCommitsIn(store.db, folder)) reportEmpty(folder)
    } catch (error) {
      reportUnreadable(folder.target, error)
    }
  }
  const total = counted.reduce((sum, { markers }) => sum + markers, 0)
  const progress = new Progress({ output, label: 'markers', total })
  let done = 0
  for (const { folder } of counted) {
    const { bucket, id } = folder.target
    if (unreadable.has(id)) continue
    try {
      await rebuildFolder(stores.open(folder.target), folder, tally, {
        ...{ store, now, keptMs: commitsKeptDays * dayMs, dryRun },
        onProgress: (markers) => {
          done += markers
          progress.show(done, `${done} of ${total}`)
        },
        onRejected: (key, reason) => problems.push(`${bucket}/${key}: ${reason}`),
      })
    } catch (error) {
      reportUnreadable(folder.target, error)
    }
  }
  const what = dryRun ? 'to record' : 'recorded'
  const expired = tally.expired === 0 ? '' : `, ${tally.expired} left out: older than INLET_COMMITS_KEPT_DAYS`
  const lines = [
    `${tally.recorded} ${what}, ${tally.known} already known, ${tally.rejected} rejected${expired}`,
    ...problems.slice(0, problemLinesMax).map((problem) => `  ${problem}`),
    ...(problems.length > problemLinesMax ? [`  … and ${problems.length - problemLinesMax} more`] : []),
  ]
  printResult(context, { json }, { ...tally, dry_run: dryRun, problems }, `${lines.join('\n')}\n`)
  return { isComplete: problems.length === 0, allRead: unreadable.size + empty.size === 0 }
}
