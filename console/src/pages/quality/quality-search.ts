/** Search parameters of the screens of data quality. */
import type { JobStatus } from '../../api/jobs.ts'
import { readChartSearch } from '../../shell/chart-search.ts'

type Search = Readonly<Record<string, unknown>>

/** Leaves out what is not text. */
function texts<Name extends string>(search: Search, names: readonly Name[]): { readonly [name in Name]?: string } {
  const given = names.flatMap((name) => {
    const value = search[name]
    return typeof value === 'string' && value !== '' ? [[name, value] as const] : []
  })
  return Object.fromEntries(given) as { readonly [name in Name]?: string }
}

/** The list: whether versions without recent records are shown. */
export function qualityListSearch({ idle }: Search): { readonly idle?: true } {
  return idle === true ? { idle } : {}
}

/** One version: the endpoint that it is about, why records were rejected, and which is open. */
export function viewQualitySearch(search: Search) {
  return { ...readChartSearch(search), ...texts(search, ['endpoint', 'code', 'column', 'record']) }
}

const statuses: readonly string[] = ['running', 'paused', 'succeeded', 'failed', 'canceled'] satisfies readonly JobStatus[]

export type JobsSearch = { readonly status?: JobStatus }

export function jobsSearch({ status }: Search): JobsSearch {
  return typeof status === 'string' && statuses.includes(status) ? { status: status as JobStatus } : {}
}
