import { parseArgs } from 'node:util'
import { z } from 'zod'
import type { Config } from '#config.ts'
import { errorMessage } from '#lib/error-message.ts'
import { Id } from '#model/id.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { type CommitPlace, type CommitPlaceFilter, listCommitPlaces } from '#store/commit-places.ts'
import { migrate } from '#store/migrate.ts'
import { openStore, type Store } from '#store/store.ts'
import { type Output, Progress } from '../demo/progress.ts'
import { countMarkers, rebuildPlace, type Tally } from './rebuild.ts'

/** What was refused is told up to so many lines. */
const problemsShownMax = 100

const usage = `Usage: inlet commits rebuild [--endpoint ID] [--destination ID] [--dry-run]

Records the commits that this database lost, from the markers in the buckets: after a database was restored from an older copy, say.
Commits that it knows are left as they are, so it may be run again at any time, also while the service runs.

  --endpoint ID      of this endpoint only
  --destination ID   those that lie at this destination only
  --dry-run          says what there is to record, and records nothing

Exit codes: 0 all is recorded, 1 something could not be read or was refused, 2 the command was wrong.
`

export type CommitsCommandOptions = {
  readonly config: Pick<Config, 'databaseUrl'> & { readonly paths: Pick<Config['paths'], 'database'> }
  readonly stores: () => Promise<ObjectStores>
  readonly stdout: Output
  readonly now: () => number
}

type Arguments = CommitPlaceFilter & { readonly dryRun: boolean }

/** Answers the exit code. */
export async function commitsCommand(args: readonly string[], options: CommitsCommandOptions): Promise<number> {
  const { config, stdout } = options
  const [verb, ...rest] = args
  if (verb === undefined || verb === 'help' || rest.includes('--help')) {
    stdout.write(usage)
    return 0
  }
  const parsed = verb === 'rebuild' ? parse(rest) : `commits doesn't know: ${verb}`
  if (typeof parsed === 'string') {
    stdout.write(`${parsed}\n\n${usage}`)
    return 2
  }
  const store = await openStore(config.databaseUrl || config.paths.database)
  try {
    await migrate(store)
    const places = await listCommitPlaces(store.db, parsed)
    if (places.length === 0) {
      stdout.write('There is no such endpoint with such a destination in this database.\n')
      return 1
    }
    return await rebuild(store, places, parsed, options, await options.stores())
  } finally {
    await store.close()
  }
}

function parse(args: readonly string[]): Arguments | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { endpoint: { type: 'string' }, destination: { type: 'string' }, 'dry-run': { type: 'boolean', default: false } },
    })
    const { endpoint, destination } = z.object({ endpoint: Id.optional(), destination: Id.optional() }).parse(values)
    return { endpoint_id: endpoint, destination_id: destination, dryRun: values['dry-run'] }
  } catch (error) {
    if (error instanceof z.ZodError) return error.issues.map(({ path, message }) => `--${path.join('.')}: ${message}`).join('\n')
    return errorMessage(error)
  }
}

async function rebuild(
  store: Store,
  places: readonly CommitPlace[],
  { dryRun }: Arguments,
  { stdout, now }: Pick<CommitsCommandOptions, 'stdout' | 'now'>,
  stores: ObjectStores,
): Promise<number> {
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
  return problems.length === 0 ? 0 : 1
}
