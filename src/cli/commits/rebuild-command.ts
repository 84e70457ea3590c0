import type { Config } from '#config/config.ts'
import { system } from '#lib/system.ts'
import { dayMs } from '#lib/time-units.ts'
import { UserError } from '#lib/user-error.ts'
import { Id } from '#model/id.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { openObjectStores } from '#objects/open.ts'
import { listAllMarkerFolders, type MarkerFolder } from '#store/commits/marker-folders.ts'
import { clearMissingCommits, listReadableCommits, narrowMissingCommits } from '#store/commits/missing-commits.ts'
import { searchAgain } from '#store/commits/unsearched-losses.ts'
import type { Store } from '#store/store.ts'
import { audited } from '../operator/audited.ts'
import { openToChange, openToRead } from '../operator/store.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { type JsonFlags, printResult } from '../terminal/print-json.ts'
import { Progress } from '../terminal/progress.ts'
import { rebuildFolders } from './rebuild-folders.ts'

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
  await using store = await (flags.dryRun ? openToRead : openToChange)(this)
  const folders = await listAllMarkerFolders(store.db, filter)
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
    const missing = await listReadableCommits(store.db, this.clock.now())
    const { isComplete, unread } = await audited(store, this.clock, what, () =>
      rebuild(this, store, folders, flags, stores, config),
    )
    const isWhole = !isFiltered && !flags.dryRun
    if (isWhole && (unread.length === 0 || flags.skipUnreadable)) await clearMissingCommits(store.db, missing)
    else if (isWhole && missing.length > 0) {
      await narrowMissingCommits(store.db, missing, unread)
      this.process.stderr.write(stillMissing)
    }
    // A place that was in doubt may be readable by now.
    if (!flags.dryRun) await searchAgain(store.db, { endpoint_id: filter.endpoint_id })
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
): Promise<{ readonly isComplete: boolean; readonly unread: readonly string[] }> {
  // With --json, standard output has only the result.
  const output = json ? context.process.stderr : context.process.stdout
  output.write(`searching markers of ${new Set(folders.map(({ endpoint_id }) => endpoint_id)).size} endpoints …\n`)
  let progress: Progress | undefined
  let [done, total] = [0, 0]
  const { tally, problems, problemCount, unread } = await rebuildFolders(folders, {
    ...{ store, stores, now: () => context.clock.now(), keptMs: commitsKeptDays * dayMs, dryRun },
    onCounted: (markers) => {
      total = markers
      progress = new Progress({ output, label: 'markers', total })
    },
    onProgress: (markers) => {
      if (markers === 0) return
      done += markers
      progress?.show(done, `${done} of ${total}`)
    },
  })
  const what = dryRun ? 'to record' : 'recorded'
  const expired = tally.expired === 0 ? '' : `, ${tally.expired} left out: older than INLET_COMMITS_KEPT_DAYS`
  const lines = [
    `${tally.recorded} ${what}, ${tally.known} already known, ${tally.rejected} rejected${expired}`,
    ...problems.slice(0, problemLinesMax).map((problem) => `  ${problem}`),
    ...(problemCount > problemLinesMax ? [`  … and ${problemCount - problemLinesMax} more`] : []),
  ]
  printResult(context, { json }, { ...tally, dry_run: dryRun, problems }, `${lines.join('\n')}\n`)
  return { isComplete: problemCount === 0, unread }
}
