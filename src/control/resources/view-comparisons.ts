/**
 * Compares a changed definition with a published version, over the records that were delivered in the last day.
 *
 * Law: it reads a bounded sample of the newest raw Parquet, and says how much that is of all. This process looks into no definition and no file:
 * one that may be killed does.
 */
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { countNoun } from '#lib/count-noun.ts'
import type { Keyring } from '#lib/keyring.ts'
import type { Definition, DefinitionFormat } from '#model/definition.ts'
import { comparisonLimits } from '#model/limits.ts'
import type { Principal } from '#model/principal.ts'
import type { View, ViewDetail } from '#model/view.ts'
import type { CompareView, ReadingBound, UnreadFiles } from '#model/view-comparison.ts'
import type { CompareTask } from '#preview/compare-stored.ts'
import type { ReadComparison } from '#preview/preview-protocol.ts'
import { findRecentRawParquet, type RawParquet } from '#store/commits/raw-parquet.ts'
import { listEndpointsOfLineage } from '#store/endpoints/bindings.ts'
import { getEndpoint } from '#store/endpoints/endpoints.ts'
import { findView, getView, getViewDetail } from '#store/endpoints/views.ts'
import type { Db, Store } from '#store/store.ts'
import { type BucketFiles, takeFitting, type UnreadReason } from './bucket-files.ts'
import { readTrialSecrets } from './previews.ts'

/** Provided by the composition: `preview/preview-workers.ts`. */
export type ComparisonRunner = {
  readonly readComparison: (
    body: Uint8Array,
    format: DefinitionFormat,
    secrets: readonly string[],
    account: string,
    signal: AbortSignal,
  ) => Promise<ReadComparison>
  /** Returns the body of the response, as JSON. */
  readonly compare: (task: CompareTask, account: string, signal: AbortSignal) => Promise<Uint8Array>
}

export type ViewComparisonsOptions = {
  readonly store: Store
  readonly keyring: Keyring
  readonly bucketFiles: BucketFiles
  readonly runner: ComparisonRunner
  readonly clock: Clock
}

/** Segments of an endpoint that are searched for raw Parquet. */
const commitsMax = 200

const { endpointsMax, filesMax, bytesMax, windowMs } = comparisonLimits

export type ViewComparisons = ReturnType<typeof viewComparisonService>

export function viewComparisonService({ store, keyring, bucketFiles, runner, clock }: ViewComparisonsOptions) {
  const { db } = store
  return {
    /** Takes the body of the request, and returns that of the response: both are JSON. */
    async compare(principal: Principal, id: string, body: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
      const { account_id } = principal
      const { values: secrets } = await readTrialSecrets({ store, keyring }, principal)
      // Whether there is such a view shows below.
      const format = (await findView(db, account_id, id))?.format ?? 'json'
      const { endpoint_id, ...asked } = await runner.readComparison(body, format, Object.keys(secrets), account_id, signal)
      const view = await getViewDetail(db, account_id, id)
      const after = await findAfter(db, account_id, view, asked)
      const before = await findBefore(db, account_id, view, asked, after.version)
      const endpoints = await findEndpoints(db, account_id, view.name, endpoint_id)
      const since = clock.now() - windowMs
      const { files, ...stored } = await findFiles(db, endpoints.slice(0, endpointsMax), since)
      const bounded_by = new Set(stored.bounded_by)
      if (endpoints.length > endpointsMax) bounded_by.add('endpoints')
      return bucketFiles.withReadableCopies(account_id, files, signal, (copies, unread) => {
        if (copies.length === 0 && unread.size > 0) throw allUnread([...unread.values()])
        const copied = copies.map(({ path, commit_id, endpoint_id: of, part }) => ({
          ...{ path, commit_id, endpoint_id: of },
          ...(part && { part }),
        }))
        const unread_files = countUnread([...unread.values()])
        const about = { view_name: view.name, since: new Date(since).toISOString(), unread_files }
        const task = { ...about, ...stored, before, after, secrets, files: copied, bounded_by: [...bounded_by] }
        return runner.compare(task, account_id, signal)
      })
    },
  }
}

type Side = CompareTask['before']

async function findAfter(
  db: Db,
  account_id: string,
  { versions }: ViewDetail,
  { definition, version }: { readonly definition?: Definition | undefined } & Pick<CompareView, 'version'>,
): Promise<Side> {
  if (definition !== undefined) return { view_id: null, version: null, definition }
  const found = versions.find((each) => (version === undefined ? each.status === 'draft' : each.version === version))
  if (found !== undefined) return toSide(await getView(db, account_id, found.id))
  if (version === undefined) throw invalid('definition', 'the view has no draft: send a definition, or the version to compare')
  throw invalid('version', `the view has no version ${version}`)
}

async function findBefore(
  db: Db,
  account_id: string,
  { versions }: ViewDetail,
  { base_version }: Pick<CompareView, 'base_version'>,
  compared: number | null,
): Promise<Side> {
  const newest = versions
    .filter(({ status, version }) => status === 'published' && version !== compared)
    .toSorted((a, b) => b.version - a.version)[0]
  const base = base_version === undefined ? newest : versions.find(({ version }) => version === base_version)
  if (base !== undefined && base.status !== 'draft') return toSide(await getView(db, account_id, base.id))
  if (base !== undefined) throw invalid('base_version', `version ${base_version} is a draft: name one that was published`)
  if (base_version !== undefined) throw invalid('base_version', `the view has no version ${base_version}`)
  throw invalid('base_version', 'the view has no other published version to compare with: try the definition with a preview')
}

function toSide({ id, version, definition }: View): Side {
  return { view_id: id, version, definition }
}

/** Returns one endpoint more than the limit if there are more. */
async function findEndpoints(db: Db, account_id: string, view_name: string, endpoint_id: string | undefined) {
  if (endpoint_id !== undefined) {
    const { id, name } = await getEndpoint(db, account_id, endpoint_id)
    return [{ id, name }]
  }
  const found = await listEndpointsOfLineage(db, account_id, view_name, endpointsMax + 1)
  if (found.length > 0) return found
  throw invalid('endpoint_id', 'the view is attached to no endpoint: name the one whose records are to be compared')
}

type OwnedFile = RawParquet & { readonly endpoint_id: string }

/** Takes files of all endpoints in turn, the newest first. Throws conflict if there are records and no file can be read. */
async function findFiles(db: Db, endpoints: readonly { readonly id: string; readonly name: string }[], since: number) {
  const bounds = new Set<ReadingBound>()
  const found = await Promise.all(
    endpoints.map(async ({ id, name }) => ({ id, name, ...(await findRecentRawParquet(db, id, since, commitsMax)) })),
  )
  for (const { files, commits, searched } of found) {
    if (files.length < searched) bounds.add('raw_parquet')
    if (searched < commits) bounds.add('files')
  }
  const inTurn = takeInTurn(found.map(({ id, files }) => files.map((file) => ({ ...file, endpoint_id: id }))))
  const fitting = takeFitting(inTurn, { filesMax, bytesMax })
  if (inTurn.length > filesMax) bounds.add('files')
  if (fitting.length < Math.min(inTurn.length, filesMax)) bounds.add('bytes')
  const records_stored = found.reduce((sum, { records }) => sum + records, 0)
  if (fitting.length === 0 && records_stored > 0) throw unreadable(inTurn)
  return {
    files: fitting,
    records_stored,
    bounded_by: [...bounds],
    endpoints: found.map(({ id, name, records }) => ({ endpoint_id: id, endpoint_name: name, records_stored: records })),
  }
}

function takeInTurn(lists: readonly (readonly OwnedFile[])[]): readonly OwnedFile[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  return Array.from({ length: longest }, (_, index) => lists.flatMap((list) => list[index] ?? [])).flat()
}

function unreadable(files: readonly OwnedFile[]): AppError {
  return new AppError(
    'conflict',
    files.length === 0
      ? 'the segments of the last day have no raw Parquet to compare on: add parquet to output_formats of the endpoint, and wait for its next segment'
      : `the raw Parquet of the last day is in files larger than ${bytesMax} bytes: lower segment_bytes of the endpoint`,
  )
}

function countUnread(reasons: readonly UnreadReason[]): readonly UnreadFiles[] {
  return [...Map.groupBy(reasons, (reason) => reason)].map(([reason, { length: files }]) => ({ reason, files }))
}

const unreadTexts: Readonly<Record<UnreadReason, string>> = {
  gone: 'no longer in the bucket',
  destination_deleted: 'of a destination that was deleted',
}

function allUnread(reasons: readonly UnreadReason[]): AppError {
  const counted = countUnread(reasons).map(
    ({ reason, files }) => `${countNoun(files, 'file')} ${unreadTexts[reason as UnreadReason]}`,
  )
  return new AppError(
    'conflict',
    `the raw Parquet of the last day cannot be read (${counted.join(', ')}): keep files for a day, and wait for the next segment`,
  )
}

function invalid(path: string, message: string): AppError {
  return new AppError('validation_error', message, { errors: [{ path, message }] })
}
