/**
 * Something with a life cycle.
 *
 * Law: `start` resolves when it serves; `stop` is idempotent, finishes what was accepted, and resolves when nothing is left running.
 */
export interface Service {
  readonly name: string
  start(): Promise<void>
  /** Drains. `signal` aborts at the deadline: then drop what can be done again after a restart. */
  stop(signal: AbortSignal): Promise<void>
}

/** Starts in order. If one fails, those already started are stopped in reverse and the error is thrown. */
export async function startAll(services: readonly Service[]): Promise<void> {
  const started: Service[] = []
  try {
    for (const service of services) {
      await service.start()
      started.push(service)
    }
  } catch (error) {
    await stopAll(started, AbortSignal.abort())
    throw error
  }
}

/** Stops in reverse order, every one of them; what failed is thrown at the end. */
export async function stopAll(services: readonly Service[], signal: AbortSignal): Promise<void> {
  const failures: unknown[] = []
  for (const service of services.toReversed()) {
    try {
      await service.stop(signal)
    } catch (error) {
      failures.push(new Error(`${service.name} did not stop cleanly`, { cause: error }))
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'some services did not stop cleanly')
}
