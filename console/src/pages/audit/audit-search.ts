/** Search parameters of the audit trail. */
export type AuditSearch = { readonly operation?: string; readonly result?: 'succeeded' | 'failed'; readonly since?: string }

export function auditSearch({ operation, result, since }: Record<string, unknown>): AuditSearch {
  return {
    ...(typeof operation === 'string' && operation !== '' ? { operation } : {}),
    ...(result === 'succeeded' || result === 'failed' ? { result } : {}),
    ...(typeof since === 'string' && !Number.isNaN(Date.parse(since)) ? { since } : {}),
  }
}
