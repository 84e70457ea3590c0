import { isLoopback } from '#lib/ip-addresses.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import type { Logger } from '#lib/telemetry.ts'

type LocalBuckets = {
  readonly objectStore: string
  readonly nodeApiListen: ListenAddress
  readonly paths: { readonly buckets: string }
}

/** Warns if buckets are directories although other machines may take part: by one database, or as nodes. */
export function warnAboutLocalBuckets(
  { objectStore, nodeApiListen, paths }: LocalBuckets,
  isShared: boolean,
  logger: Logger,
): void {
  if (objectStore !== 'directory' || (!isShared && isLoopback(nodeApiListen.host))) return
  logger.warn(
    { directory: paths.buckets },
    'INLET_OBJECT_STORE=directory: each machine writes to buckets on its own disk. Set s3 for control and all nodes, unless they run on one machine or share this directory',
  )
}
