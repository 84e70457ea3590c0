import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError } from '#errors.ts'
import { MiB } from '#lib/bytes.ts'
import { Semaphore } from '#lib/semaphore.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Principal } from '#model/api-key.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import { findDestination } from '#store/destinations.ts'
import { getEndpoint } from '#store/endpoints.ts'
import { listRawParquet, type RawParquet } from '#store/raw-parquet.ts'
import type { Store } from '#store/store.ts'

/** How many of the newest commits are searched for raw Parquet, the largest file read, and concurrent reads. */
const COMMITS_MAX = 50
const PARQUET_BYTES_MAX = 64 * MiB
const READS_AT_ONCE = 1

/** Provided by the composition: `preview/preview-workers.ts`. */
export type SuggestionRunner = {
  /** Returns the body of the response, or the endpoint that the request names. */
  readonly suggest: (
    body: Uint8Array,
    account: string,
    signal: AbortSignal,
  ) => Promise<Uint8Array | { readonly endpointId: string }>
  /** The same from a file of raw Parquet. */
  readonly suggestFrom: (parquet: string, account: string, signal: AbortSignal) => Promise<Uint8Array>
}

export type SuggestionsOptions = {
  readonly store: Store
  readonly objectStores: ObjectStores
  readonly runner: SuggestionRunner
  readonly logger: Logger
}

/**
 * Suggests definitions from samples, or from the data of an endpoint.
 *
 * Law: files from a bucket are parsed only in a separate process, which may crash. This process copies their bytes, with bounds on
 * their size and number.
 */
export class Suggestions {
  readonly #options: SuggestionsOptions
  readonly #reads = new Semaphore(READS_AT_ONCE)

  constructor(options: SuggestionsOptions) {
    this.#options = options
  }

  /** Takes the body of the request, and returns that of the response: both are JSON. */
  async suggest(principal: Principal, body: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    const suggested = await this.#options.runner.suggest(body, principal.account_id, signal)
    if (suggested instanceof Uint8Array) return suggested
    // Field names can be data, and a caller with only the ingest scope must not read data of others.
    if (!principal.scopes.some((scope) => scope === 'metrics' || scope === 'admin')) {
      throw new AppError('forbidden', 'suggesting from the data of an endpoint needs a token with scope metrics or admin')
    }
    const source = await this.#newest(principal, suggested.endpointId)
    using _read = await this.#reads.acquire(1, signal)
    return await this.#suggestFrom(principal, source, signal)
  }

  async #newest({ account_id }: Principal, endpoint_id: string): Promise<RawParquet> {
    const { db } = this.#options.store
    await getEndpoint(db, account_id, endpoint_id)
    const files = await listRawParquet(db, endpoint_id, COMMITS_MAX)
    const fitting = files.find(({ bytes }) => bytes <= PARQUET_BYTES_MAX)
    if (fitting !== undefined) return fitting
    throw files.length === 0
      ? notSuggestible(
          `none of the last ${COMMITS_MAX} segments of the endpoint has raw Parquet: add parquet to its output_formats and wait for the next segment, or send samples`,
        )
      : notSuggestible(
          `the raw Parquet files of the endpoint are larger than ${PARQUET_BYTES_MAX} bytes: lower segment_bytes, or send samples`,
        )
  }

  async #suggestFrom({ account_id }: Principal, file: RawParquet, signal: AbortSignal): Promise<Uint8Array> {
    const bytes = await this.#read(account_id, file, signal)
    const directory = await mkdtemp(join(tmpdir(), 'inlet-suggest-'))
    try {
      const parquet = join(directory, 'raw.parquet')
      await writeFile(parquet, bytes)
      return await this.#options.runner.suggestFrom(parquet, account_id, signal)
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  }

  async #read(account_id: string, { destination_id, bucket, region, key }: RawParquet, signal: AbortSignal): Promise<Uint8Array> {
    const { store, objectStores, logger } = this.#options
    const destination = await findDestination(store.db, account_id, destination_id)
    if (destination === undefined) throw notSuggestible('the destination of the last segment was deleted: send samples')
    let bytes: Uint8Array | undefined
    try {
      bytes = await objectStores.open({ ...destination, bucket, region, session: sessionName({ account_id }) }).get(key, signal)
    } catch (error) {
      signal.throwIfAborted()
      logger.warn({ err: error }, 'raw Parquet read failed')
      throw notSuggestible('the bucket cannot be read: validate the destination, or send samples')
    }
    if (bytes === undefined) throw notSuggestible('the raw Parquet of the last segment is no longer in the bucket: send samples')
    return bytes
  }
}

function notSuggestible(message: string): AppError {
  return new AppError('validation_error', message, { errors: [{ path: 'endpoint_id', message }] })
}
