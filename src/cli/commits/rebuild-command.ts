import { errorMessage } from '#lib/error-message.ts'
import { UserError } from '#lib/user-error.ts'
import { Id } from '#model/id.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { openObjectStores } from '#objects/open.ts'
import { type CommitPlace, listCommitPlaces } from '#store/commit-places.ts'
import type { Store } from '#store/store.ts'
import { type CliContext, UsageError } from '../context.ts'
import { Progress } from '../progress.ts'
import { openMigratedStore } from '../store.ts'
import { countMarkers, rebuildPlace, type Tally } from './rebuild.ts'

/** What was refused is told up to so many lines. */
const problemsShownMax = 100

export type RebuildFlags = { readonly endpoint?: string; readonly destination?: string; readonly dryRun: boolean }

export async function rebuildCommits(this: CliContext, flags: RebuildFlags): Promise<void> {
  const filter = { endpoint_id: id('endpoint', flags.endpoint), destination_id: id('destination', flags.destination) }
  await using store = await openMigratedStore(this)
  const places = await listCommitPlaces(store.db, filter)
  if (places.length === 0) throw new UserError('no such endpoint with such a destination in this database')
  const { stores, close } = await openObjectStores(await this.readConfig(), { clock: this.clock })
  try {
    const isComplete = await rebuild(this, store, places, flags.dryRun, stores)
    if (!isComplete) this.process.exitCode = 1
  } finally {
    close()
  }
}

function id(option: string, text: string | undefined): string | undefined {
  if (text === undefined || Id.safeParse(text).success) return text
  throw new UsageError(`--${option}: must be an id, not ${JSON.stringify(text)}`)
}

/** Returns whether every marker was read and recorded. */
async function rebuild(
  { process: { stdout }, clock }: CliContext,
  store: Store,
  places: readonly CommitPlace[],
  dryRun: boolean,
  stores: ObjectStores,
): Promise<boolean> {
  const now = () => clock.now()
  const sum: Tally = { recorded: 0, known: 0, refused: 0 }
  const problems: string[] = []
  const unreadable = new Set<string>()
  const notRead = ({ id, bucket }: CommitPlace['target'], error: unknown) => {
    unreadable.add(id)
    problems.push(`bucket ${bucket} was not read to its end: ${errorMessage(error)}`)
  }
  const counted: { readonly place: CommitPlace; readonly markers: number }[] = []
  stdout.write(`looking for the markers of ${new Set(places.map(({ endpoint_id }) => endpoint_id)).size} endpoints …\n`)
  for (const place of places) {
    // What a bucket says of one endpoint it would say of each.
    if (unreadable.has(place.target.id)) continue
    try {
      const markers = await countMarkers(stores.open(place.target), place)
      if (markers > 0) counted.push({ place, markers })
    } catch (error) {
      notRead(place.target, error)
    }
  }
  const total = counted.reduce((all, { markers }) => all + markers, 0)
  const progress = new Progress({ output: stdout, label: 'markers', total })
  let done = 0
  for (const { place } of counted) {
    const { bucket, id } = place.target
    if (unreadable.has(id)) continue
    try {
      await rebuildPlace(stores.open(place.target), place, sum, {
        ...{ store, now, dryRun },
        onProgress: (markers) => {
          done += markers
          progress.show(done, `${done} of ${total}`)
        },
        onRefused: (key, reason) => problems.push(`${bucket}/${key}: ${reason}`),
      })
    } catch (error) {
      notRead(place.target, error)
    }
  }
  const what = dryRun ? 'to record' : 'recorded'
  stdout.write(`${sum.recorded} ${what}, ${sum.known} known already, ${sum.refused} refused\n`)
  for (const problem of problems.slice(0, problemsShownMax)) stdout.write(`  ${problem}\n`)
  if (problems.length > problemsShownMax) stdout.write(`  … and ${problems.length - problemsShownMax} more\n`)
  return problems.length === 0
}
