import { AppError } from '#errors.ts'
import { MiB } from '#lib/bytes.ts'
import type { Principal } from '#model/principal.ts'
import { listRawParquet, type RawParquet } from '#store/commits/raw-parquet.ts'
import { getEndpoint } from '#store/endpoints/endpoints.ts'
import type { Store } from '#store/store.ts'
import type { BucketFiles } from './bucket-files.ts'

/** How many of the newest commits are searched for raw Parquet, and the largest file read. */
const COMMITS_MAX = 50
const PARQUET_BYTES_MAX = 64 * MiB

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
  readonly bucketFiles: BucketFiles
  readonly runner: SuggestionRunner
}

/**
 * Suggests definitions from samples, or from the data of an endpoint.
 *
 * Law: files from a bucket are parsed only in a separate process, which may crash.
 */
export class Suggestions {
  readonly #options: SuggestionsOptions

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
    const { bucketFiles, runner } = this.#options
    try {
      return await bucketFiles.withCopies(account_id, [file], signal, ([parquet = '']) =>
        runner.suggestFrom(parquet, account_id, signal),
      )
    } catch (error) {
      throw error instanceof AppError && error.code === 'conflict' ? notSuggestible(`${error.message}, or send samples`) : error
    }
  }
}

function notSuggestible(message: string): AppError {
  return new AppError('validation_error', message, { errors: [{ path: 'endpoint_id', message }] })
}
