import type { Config } from '#config.ts'
import { isLoopback } from '#lib/option-types.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { ChildName } from './child-environment.ts'

type Settings = Pick<Config, 'objectStore' | 'nodeApiListen' | 'controlUrl' | 'paths'>

/** Warns if buckets are folders of this machine although control and nodes may run on several: each would have its own. */
export function warnAboutSplitBuckets(config: Settings, processes: readonly ChildName[], logger: Logger): void {
  const { objectStore, nodeApiListen, controlUrl, paths } = config
  if (objectStore !== 'directory') return
  const servesOthers = processes.includes('control') && !isLoopback(nodeApiListen.host)
  const controlHost = URL.parse(controlUrl ?? '')?.hostname.replace(/^\[|\]$/g, '') ?? 'localhost'
  const isNodeOfOthers = processes.includes('delivery') && !isLoopback(controlHost)
  if (!servesOthers && !isNodeOfOthers) return
  const remedy = `set INLET_OBJECT_STORE=s3 for control and all nodes, unless they share ${paths.buckets}`
  logger.warn({ buckets: paths.buckets, remedy }, 'buckets are folders on this machine, but control and nodes are on several')
}
