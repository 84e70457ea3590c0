import { queryOptions } from '@tanstack/react-query'
import { slowMs } from './intervals.ts'

/** Warnings of control that an operator should know, although it works: `notes` of `/readyz`. */
export const readinessQuery = queryOptions({
  queryKey: ['readiness'],
  async queryFn(): Promise<readonly string[]> {
    const response = await fetch('/readyz')
    const body: { readonly notes?: readonly string[] } = await response.json()
    return body.notes ?? []
  },
  refetchInterval: slowMs,
})
