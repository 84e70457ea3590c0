import { errorMessage } from '#lib/error-message.ts'
import type { Logger } from '#lib/telemetry.ts'
import { startProblem } from './start-problem.ts'

export type App = { stop(signal: AbortSignal): Promise<void> }

export type RunAppOptions = {
  readonly name: string
  readonly shutdownSeconds: number
  readonly logger: Logger
  readonly start: () => Promise<App>
}

/**
 * Runs an app and returns the exit code once it has stopped. SIGTERM, SIGINT or the exit of the supervisor stops it
 * gracefully; a second signal exits at once. An uncaught error ends the process, and its supervisor restarts it.
 */
export async function runApp({ name, shutdownSeconds, logger, start }: RunAppOptions): Promise<number> {
  const isSupervised = process.channel !== undefined
  const stopRequested = Promise.withResolvers<string>()
  const crash = (error: unknown) => {
    logger.fatal({ err: error }, 'unexpected error; exiting')
    process.exit(70)
  }
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', crash)

  // A full disk or a reader that is gone must not end a server.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

  let signals = 0
  const onSignal = (reason: string) => {
    signals += 1
    if (signals > 1) process.exit(1)
    stopRequested.resolve(reason)
  }
  process.on('SIGTERM', () => onSignal('SIGTERM'))
  // Ctrl-C reaches the whole process group. The supervisor stops its children in the right order.
  process.on('SIGINT', () => (isSupervised ? undefined : onSignal('SIGINT')))
  process.on('disconnect', () => stopRequested.resolve('supervisor exited'))

  // Other timers do not keep the process alive. This one does while the app runs.
  const alive = setInterval(() => undefined, 0x7fffffff)
  try {
    const app = await start()
    if (isSupervised) process.send?.({ type: 'ready' })
    logger.info({}, `${name} started`)
    logger.info({ reason: await stopRequested.promise }, `${name} stopping`)
    await app.stop(AbortSignal.timeout(shutdownSeconds * 1000))
    return 0
  } catch (error) {
    const problem = startProblem(error)
    const event = signals > 0 ? `${name} failed to stop` : `${name} failed to start`
    // A stack would only hide what the operator can do.
    if (problem !== undefined && signals === 0) logger.fatal({ reason: problem }, event)
    else logger.fatal({ reason: errorMessage(error), err: error }, event)
    return 1
  } finally {
    clearInterval(alive)
    // An open channel to the supervisor would keep the process alive as well.
    if (process.connected) process.disconnect?.()
  }
}
