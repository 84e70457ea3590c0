import { join } from 'node:path'
import { AppError } from '#errors.ts'
import { Semaphore } from '#lib/semaphore.ts'
import type { Logger } from '#lib/telemetry.ts'
import { endpointLimit, type Principal } from '#model/principal.ts'
import type { QueriedTable, RunQuery } from '#model/query.ts'
import type { ObjectStore, ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import type { FetchedTable, RowRange, TableName } from '#query/query-protocol.ts'
import { findDestination } from '#store/endpoints/destinations.ts'
import { getEndpoint } from '#store/endpoints/endpoints.ts'
import type { Store } from '#store/store.ts'
import { type ChosenFile, type ChosenFiles, chooseFiles, type ResolvedTable, resolveTables } from './query-tables.ts'

/** Files of one query that are fetched at the same time. */
const FETCHES_AT_ONCE = 8

/** Provided by the composition: `query/query-workers.ts`. */
export type QueryRunner = {
  readonly run: (
    query: {
      readonly sql: string
      readonly maxRows: number
      readonly fetch: (tables: readonly TableName[], directory: string, signal: AbortSignal) => Promise<readonly FetchedTable[]>
    },
    account: string,
    signal: AbortSignal,
  ) => Promise<Uint8Array>
}

export type QueriesOptions = {
  readonly store: Store
  readonly objectStores: ObjectStores
  readonly runner: QueryRunner
  readonly logger: Logger
}

type FetchFile = (file: ChosenFile, path: string) => Promise<boolean>

/**
 * Runs SQL over what was delivered to the buckets of an account.
 *
 * Law: this process parses no statement and no file. It chooses files by their commits, and copies them into the directory of the query
 * with the roles of the account's destinations, within bounds. Another process, which can be killed, does the rest.
 */
export class Queries {
  readonly #options: QueriesOptions

  constructor(options: QueriesOptions) {
    this.#options = options
  }

  /** Returns the body of the response: JSON. */
  async run(principal: Principal, query: RunQuery, signal: AbortSignal): Promise<Uint8Array> {
    const { store, runner } = this.#options
    const { sql, max_rows: maxRows, endpoint_id, since, until } = query
    const { db } = store
    const { account_id } = principal
    if (endpoint_id !== undefined) await getEndpoint(db, account_id, endpoint_id)
    const reach = endpointLimit(principal)
    if (endpoint_id !== undefined && reach?.includes(endpoint_id) === false)
      throw new AppError('forbidden', `the key is not for the endpoint ${endpoint_id}; use another key`)
    const fetch = async (names: readonly TableName[], directory: string, ended: AbortSignal) => {
      const tables = await resolveTables(db, account_id, names, { only: endpoint_id, reach })
      const chosen = await chooseFiles(db, account_id, tables, { since, until, only: endpoint_id })
      const fetchFile = this.#fetcher(account_id, ended)
      const fetched: FetchedTable[] = []
      for (const [index, table] of tables.entries())
        fetched.push(await fetchTable(table, chosen[index] ?? nothing, `${index}`, directory, fetchFile))
      return fetched
    }
    return runner.run({ sql, maxRows, fetch }, account_id, signal)
  }

  /** Returns a function that copies a file to a path, and returns false if it is no longer in the bucket. */
  #fetcher(account_id: string, signal: AbortSignal): FetchFile {
    const slots = new Semaphore(FETCHES_AT_ONCE)
    const failed = new AbortController()
    const ended = AbortSignal.any([signal, failed.signal])
    const buckets = new Map<string, Promise<ObjectStore | undefined>>()
    return async (file, path) => {
      using _slot = await slots.acquire(1, ended)
      const id = `${file.destination_id} ${file.bucket} ${file.region}`
      const opened = buckets.get(id) ?? this.#open(account_id, file)
      buckets.set(id, opened)
      try {
        // The owner of the bucket may have replaced the file.
        return (await (await opened)?.getFile(file.key, path, ended, file.bytes)) ?? false
      } catch (error) {
        ended.throwIfAborted()
        this.#options.logger.warn({ err: error, account_id }, 'delivered file read failed')
        failed.abort(unreadable(error))
        throw failed.signal.reason
      }
    }
  }

  /** Returns undefined if the destination was deleted. */
  async #open(account_id: string, { destination_id, bucket, region }: ChosenFile): Promise<ObjectStore | undefined> {
    const { store, objectStores } = this.#options
    const destination = await findDestination(store.db, account_id, destination_id)
    return destination && objectStores.open({ ...destination, bucket, region, session: sessionName({ account_id }) })
  }
}

const nothing: ChosenFiles = { files: [], complete: true, may_lack_commits_since: null }

async function fetchTable(
  { name, columns, identity }: ResolvedTable,
  { files, complete, may_lack_commits_since }: ChosenFiles,
  prefix: string,
  directory: string,
  fetchFile: FetchFile,
): Promise<FetchedTable> {
  const attempts = await Promise.allSettled(
    files.map(async (file, index) => {
      const local = `${prefix}-${index}.parquet`
      return (await fetchFile(file, join(directory, local))) ? { file, local } : undefined
    }),
  )
  // Only after all have ended: none may write into a directory that is being removed.
  const read = attempts.map(fulfilledValue).filter((each) => each !== undefined)
  const summary: QueriedTable = {
    ...identity,
    files: read.length,
    bytes: read.reduce((sum, { file }) => sum + file.bytes, 0),
    missing: files.length - read.length,
    complete: complete && read.length === files.length,
    may_lack_commits_since,
    oldest: read.at(-1)?.file.uploaded_at ?? null,
    newest: read[0]?.file.uploaded_at ?? null,
  }
  const own = read.map(({ file: { ranges, partition }, local }) => ({
    ...{ file: local, partition },
    ...(ranges !== null && { ranges: adjoin(ranges) }),
  }))
  return { name, columns, files: own, summary }
}

/** Joins ranges that follow each other: a merged file may have ten thousand. */
function adjoin(ranges: readonly RowRange[]): readonly RowRange[] {
  const joined: { first_row: number; rows: number }[] = []
  for (const { first_row, rows } of ranges.toSorted((a, b) => a.first_row - b.first_row)) {
    const before = joined.at(-1)
    if (before !== undefined && before.first_row + before.rows === first_row) before.rows += rows
    else joined.push({ first_row, rows })
  }
  return joined
}

function fulfilledValue<T>(attempt: PromiseSettledResult<T>): T {
  if (attempt.status === 'rejected') throw attempt.reason
  return attempt.value
}

function unreadable(error: unknown): AppError {
  const reason = error instanceof ObjectStoreError ? error.message : 'a file in the bucket cannot be read'
  return new AppError('validation_error', `${reason}: validate the destination, then try again`, {
    errors: [{ path: 'sql', message: reason }],
  })
}
