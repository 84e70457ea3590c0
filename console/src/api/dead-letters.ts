import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import type { paths } from '../../../src/client/generated/schema.ts'
import { client, ok, type Schemas } from './client.ts'
import { slowMs, whileThere } from './intervals.ts'
import { viewsKey } from './views.ts'

export type DlqFile = paths['/v1/views/{id}/dlq-files']['get']['responses'][200]['content']['application/json']['files'][number]
export type DlqReason =
  paths['/v1/views/{id}/dlq-reasons']['get']['responses'][200]['content']['application/json']['items'][number]
export type DlqRecord = Schemas['DlqRecord']

const filesOfPage = 20

/** Files of records that a version rejected, newest first. Their links are good for an hour. */
export const dlqFilesQuery = (account: string, view: string, endpoint_id: string | undefined) =>
  infiniteQueryOptions({
    queryKey: [...viewsKey(account), view, 'dlq-files', endpoint_id],
    queryFn: ({ pageParam }) => {
      const query = { limit: filesOfPage, ...given({ endpoint_id }), ...(pageParam === null ? {} : { cursor: pageParam }) }
      return ok(client.GET('/v1/views/{id}/dlq-files', { params: { path: { id: view }, query } }))
    },
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor }) => next_cursor,
    refetchInterval: whileThere(slowMs),
  })

/** Selects dead letters. `count` is how many there are: files in the bucket are read again only when there are more. */
export type LettersOf = { readonly view: string; readonly count: number; readonly endpoint_id?: string | undefined }

/** Rereading costs the bucket. What failed is tried again when a person asks. */
const fromBucket = { staleTime: Number.POSITIVE_INFINITY, placeholderData: keepPreviousData, retry: false } as const

/** Why records were rejected, in the newest files. */
export const dlqReasonsQuery = (account: string, of: LettersOf) =>
  queryOptions({
    queryKey: [...viewsKey(account), of.view, 'dlq-reasons', of],
    queryFn: () => {
      const query = given({ endpoint_id: of.endpoint_id })
      return ok(client.GET('/v1/views/{id}/dlq-reasons', { params: { path: { id: of.view }, query } }))
    },
    ...fromBucket,
  })

export type ReasonFilter = { readonly error_code?: string | undefined; readonly column?: string | undefined }

const recordsMax = 50

/** The latest rejected records, of one reason or of all. */
export const dlqRecordsQuery = (account: string, of: LettersOf, filter: ReasonFilter) =>
  queryOptions({
    queryKey: [...viewsKey(account), of.view, 'dlq-records', of, filter],
    queryFn: () => {
      const query = { limit: recordsMax, ...given({ endpoint_id: of.endpoint_id, ...filter }) }
      return ok(client.GET('/v1/views/{id}/dlq-records', { params: { path: { id: of.view }, query } }))
    },
    ...fromBucket,
  })

/** Leaves out what is not set. */
function given<Name extends string>(
  query: { readonly [name in Name]?: string | undefined },
): { readonly [name in Name]?: string } {
  const entries = Object.entries(query).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { readonly [name in Name]?: string }
}
