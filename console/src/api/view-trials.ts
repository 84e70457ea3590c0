import { queryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'
import type { DefinitionFormat } from './views.ts'

export type PreviewResult = Schemas['PreviewResult']
export type PreviewColumn = Schemas['PreviewColumn']
export type PreviewIssue = Schemas['PreviewIssue']
export type PreviewItem = Schemas['PreviewItem']
export type Suggestion = Schemas['Suggestion']
export type SuggestedColumn = Schemas['SuggestedColumn']

/** Bounds on a preview. */
export const trialLimits = { samplesMax: 100 } as const

/** A definition as text, and records to try it on. */
export type Trial = {
  readonly definition: string
  readonly format: DefinitionFormat
  readonly samples: readonly string[]
}

/** The same text and samples always give the same result. */
const settled = { staleTime: Number.POSITIVE_INFINITY, gcTime: 60_000, refetchOnWindowFocus: false, retry: false } as const

export const previewQuery = (account: string, trial: Trial) =>
  queryOptions({
    queryKey: [account, 'view-preview', trial],
    queryFn: ({ signal }) => ok(client.POST('/v1/views/preview', { body: { ...trial, samples: [...trial.samples] }, signal })),
    ...settled,
  })

export const suggestionQuery = (account: string, samples: readonly string[]) =>
  queryOptions({
    queryKey: [account, 'view-suggestion', samples],
    queryFn: ({ signal }) => suggestFrom(samples, signal),
    enabled: samples.length > 0,
    ...settled,
  })

export function suggestFrom(samples: readonly string[], signal?: AbortSignal): Promise<Suggestion> {
  return ok(client.POST('/v1/views/suggest', { body: { samples: [...samples] }, ...(signal === undefined ? {} : { signal }) }))
}

/** From the latest records that the endpoint delivered. */
export function suggestForEndpoint(endpoint_id: string): Promise<Suggestion> {
  return ok(client.POST('/v1/views/suggest', { body: { endpoint_id } }))
}
