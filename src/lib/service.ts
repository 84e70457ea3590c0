/**
 * A component with a life cycle.
 *
 * Law: `start` resolves when the service is ready. `stop` is idempotent, finishes accepted work, and resolves when nothing is running.
 */
export interface Service {
  readonly name: string
  start(): Promise<void>
  /** Drains. `signal` aborts at the deadline: then drop work that can be repeated after a restart. */
  stop(signal: AbortSignal): Promise<void>
}

/** Starts the services in order. If one fails, stops those already started in reverse order and throws the error. */
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

/** Stops all services in reverse order. Throws at the end if any failed. */
export async function stopAll(services: readonly Service[], signal: AbortSignal): Promise<void> {
  const failures: unknown[] = []
  for (const service of services.toReversed()) {
    try {
      await service.stop(signal)
    } catch (error) {
      failures.push(new Error(`${service.name} failed to stop`, { cause: error }))
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'some services failed to stop')
}
