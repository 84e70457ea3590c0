import type { Logger } from '#lib/telemetry.ts'

export type App = { stop(signal: AbortSignal): Promise<void> }

export type ServeOptions = {
  readonly name: string
  readonly shutdownSeconds: number
  readonly logger: Logger
  readonly start: () => Promise<App>
}

/**
 * Runs an app until the process is told to stop, and answers the exit code. SIGTERM, SIGINT or the end of the supervisor
 * drain; a second signal exits at once. What nobody catches ends the process: its supervisor starts it anew from what is on disk.
 */
export async function serve({ name, shutdownSeconds, logger, start }: ServeOptions): Promise<number> {
  const supervised = process.channel !== undefined
  const told = Promise.withResolvers<string>()
  const crash = (error: unknown) => {
    logger.fatal({ err: error }, 'a broken invariant ends the process')
    process.exit(70)
  }
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', crash)

  let signals = 0
  const onSignal = (reason: string) => {
    signals += 1
    if (signals > 1) process.exit(1)
    told.resolve(reason)
  }
  process.on('SIGTERM', () => onSignal('SIGTERM'))
  // Ctrl-C reaches the whole process group; the supervisor passes it on in the right order.
  process.on('SIGINT', () => (supervised ? undefined : onSignal('SIGINT')))
  process.on('disconnect', () => told.resolve('the supervisor ended'))

  // Timers of ours don't hold the process; while it serves, this one does.
  const alive = setInterval(() => undefined, 0x7fffffff)
  let app: App
  try {
    app = await start()
  } catch (error) {
    logger.fatal({ reason: error instanceof Error ? error.message : String(error), err: error }, `${name} could not start`)
    return 1
  }
  if (supervised) process.send?.({ type: 'ready' })
  logger.info({}, `${name} is up`)
  const reason = await told.promise
  logger.info({ reason }, `${name} is stopping`)
  const deadline = AbortSignal.timeout(shutdownSeconds * 1000)
  try {
    await app.stop(deadline)
  } catch (error) {
    logger.error({ err: error }, `${name} did not stop cleanly`)
    return 1
  } finally {
    clearInterval(alive)
  }
  return 0
}
