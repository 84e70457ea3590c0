import { infiniteQueryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'

export type AuditEvent = Schemas['AuditEvent']
export type AuditFilter = { readonly operation?: string; readonly result?: AuditEvent['result']; readonly since?: string }

const pageSize = 50

/** Events of an account, or of the whole installation for operators. */
export const auditEventsQuery = (account: string | 'installation', filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: [account, 'audit-events', filter],
    queryFn: ({ pageParam }) => {
      const params = { query: { ...filter, limit: pageSize, ...(pageParam === '' ? {} : { before: pageParam }) } }
      return account === 'installation'
        ? ok(client.GET('/v1/installation/audit-events', { params }))
        : ok(client.GET('/v1/audit-events', { params }))
    },
    initialPageParam: '',
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
  })
