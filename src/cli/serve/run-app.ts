import { errorMessage } from '#lib/error-message.ts'
import type { Logger } from '#lib/telemetry.ts'

export type App = { stop(signal: AbortSignal): Promise<void> }

export type RunAppOptions = {
  readonly name: string
  readonly shutdownSeconds: number
  readonly logger: Logger
  readonly start: () => Promise<App>
}

/**
 * Runs an app until the process is told to stop, and answers the exit code. SIGTERM, SIGINT or the end of the supervisor
 * drain; a second signal exits at once. What nobody catches ends the process: its supervisor starts it anew from what is on disk.
 */
export async function runApp({ name, shutdownSeconds, logger, start }: RunAppOptions): Promise<number> {
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
  try {
    const app = await start()
    if (supervised) process.send?.({ type: 'ready' })
    logger.info({}, `${name} is up`)
    logger.info({ reason: await told.promise }, `${name} is stopping`)
    await app.stop(AbortSignal.timeout(shutdownSeconds * 1000))
    return 0
  } catch (error) {
    logger.fatal(
      { reason: errorMessage(error), err: error },
      signals > 0 ? `${name} did not stop cleanly` : `${name} could not start`,
    )
    return 1
  } finally {
    clearInterval(alive)
    // An open channel to the supervisor would hold the process, too.
    if (process.connected) process.disconnect?.()
  }
}
