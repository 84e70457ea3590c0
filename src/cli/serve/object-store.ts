import type { Config } from '#config/config.ts'
import { isLoopback } from '#lib/ip-addresses.ts'
import type { Logger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import type { ChildName } from './child-environment.ts'

/**
 * Checks that a node does not write to buckets on its own disk by mistake. `objectStore` is what somebody set. Throws UserError if nobody set
 * anything, because the default fits one machine.
 */
export function checkObjectStore(
  { controlUrl, objectStore, paths }: Config,
  children: readonly ChildName[],
  logger: Logger,
  configured: string | undefined,
): void {
  const host = URL.parse(controlUrl ?? '')?.hostname.replace(/^\[|\]$/g, '')
  const isElsewhere = !children.includes('control') && host !== undefined && !isLoopback(host)
  if (!isElsewhere || objectStore !== 'directory') return
  if (!configured)
    throw new UserError(
      `INLET_OBJECT_STORE: control is on another machine, and this node would write to buckets on its own disk; set s3, as on control, or directory if all machines share ${paths.buckets}`,
    )
  logger.warn(
    { directory: paths.buckets },
    'INLET_OBJECT_STORE=directory: this node writes to buckets on its own disk. Set s3, as on control, unless all machines share this directory',
  )
}
