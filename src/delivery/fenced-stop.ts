/** Stops services once: when they are told to, or when control refuses this node. */
import { type Service, stopAll } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { NodeFence } from '#node/node-fence.ts'

export type FencedStopOptions = {
  readonly services: readonly Service[]
  readonly fence: Pick<NodeFence, 'onFinal'>
  readonly logger: Logger
}

/** Call it once the services have started. Returns their stop, which waits for nothing once control refuses the node. */
export function stopWhenFenced({ services, fence, logger }: FencedStopOptions): (signal: AbortSignal) => Promise<void> {
  let stopped: Promise<void> | undefined
  // A stop may have begun before this node learns that it is fenced.
  const fenced = new AbortController()
  const stop = (signal: AbortSignal) => (stopped ??= stopAll(services, AbortSignal.any([signal, fenced.signal])))
  fence.onFinal(() => {
    fenced.abort()
    stop(fenced.signal).catch((error: unknown) => logger.error({ err: error }, 'delivery of a fenced node failed to stop'))
  })
  return stop
}
