import type { BlockedLog } from '#log/log-writer.ts'
import { Id } from '#model/id.ts'

/** A directory in the WAL that is not named after an endpoint is only in the log. */
export function blockedEndpoints(logs: readonly BlockedLog[]): { readonly endpoint_id: string; readonly reason: string }[] {
  return logs.flatMap(({ logName, reason }) => (Id.safeParse(logName).success ? [{ endpoint_id: logName, reason }] : []))
}
