import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { useEffect } from 'react'
import { client, ok, type Schemas } from './client.ts'
import { slowMs, whileThere } from './intervals.ts'

export type View = Schemas['View']
export type ViewDetail = Schemas['ViewDetail']
export type ViewWithUsage = Schemas['ViewWithUsage']
export type Definition = Schemas['Definition']
export type DefinitionFormat = View['format']

/** Everything below this key changes when a view does. */
export const viewsKey = (account: string) => [account, 'views'] as const

const pageSize = 200

/** Versions of all views, newest first. */
export const viewsQuery = (account: string) =>
  infiniteQueryOptions({
    queryKey: [...viewsKey(account), 'list'],
    queryFn: ({ pageParam }) =>
      ok(client.GET('/v1/views', { params: { query: { status: 'all', limit: pageSize, offset: pageParam } } })),
    initialPageParam: 0,
    getNextPageParam: ({ next_offset }) => next_offset,
  })

/** Loads page after page while `wanted`, because what somebody looks for may stand on any. */
export function useWholeList(
  { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage }: PagedList,
  wanted: boolean,
): void {
  const next = wanted && hasNextPage && !isFetchingNextPage && !isFetchNextPageError
  useEffect(() => {
    if (next) void fetchNextPage()
  }, [next, fetchNextPage])
}

type PagedList = {
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  readonly isFetchNextPageError: boolean
  readonly fetchNextPage: () => unknown
}

export const viewQuery = (account: string, id: string) =>
  queryOptions({
    queryKey: [...viewsKey(account), id],
    queryFn: () => ok(client.GET('/v1/views/{id}', { params: { path: { id } } })),
    refetchInterval: whileThere(slowMs),
  })

export function createVersion(id: string, copy_from_version: number): Promise<View> {
  return ok(client.POST('/v1/views/{id}/versions', { params: { path: { id } }, body: { copy_from_version } }))
}

export function publishView(id: string): Promise<View> {
  return ok(client.POST('/v1/views/{id}/publish', { params: { path: { id } } }))
}

export function archiveView(id: string): Promise<View> {
  return ok(client.POST('/v1/views/{id}/archive', { params: { path: { id } } }))
}

export async function deleteDraft(id: string): Promise<void> {
  await ok(client.DELETE('/v1/views/{id}', { params: { path: { id } } }))
}

export type NewView = {
  readonly name: string
  readonly description: string
  readonly tags: readonly string[]
  /** As text. */
  readonly definition: string
  readonly format: DefinitionFormat
}

export function createView({ tags, ...view }: NewView): Promise<View> {
  return ok(client.POST('/v1/views', { body: { ...view, tags: [...tags] } }))
}

export function changeDraft(
  id: string,
  { tags, ...change }: Omit<NewView, 'name'>,
): Promise<View & { readonly warnings: readonly Schemas['DefinitionWarning'][] }> {
  return ok(client.PATCH('/v1/views/{id}', { params: { path: { id } }, body: { ...change, tags: [...tags] } }))
}
