import { isatty } from 'node:tty'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { IdleTrimmer } from '#lib/idle-trimmer.ts'
import type { Logger } from '#lib/telemetry.ts'
import { type ChildReport, isMessage } from '#node/child-messages.ts'
import { startProblem } from './start-problem.ts'
import { stopRequest, supervisorExited } from './stop-request.ts'

export type App = {
  /** Called before `stop`, without a deadline, unless the supervisor has ended: resolves when clients no longer need the app. */
  leave?(): Promise<void>
  stop(signal: AbortSignal): Promise<void>
  /** Ends processes of the app that would outlive this one, at once. */
  kill?(): void
  /** Resolves with the reason if the app cannot go on. */
  readonly failed?: Promise<Error>
  /** Resolves with the exit code if the app has nothing left to do. */
  readonly finished?: Promise<number>
}

export type RunAppOptions = {
  readonly name: string
  readonly shutdownSeconds: number
  readonly logger: Logger
  readonly clock: Clock
  /** Whether a supervisor of ours started this process: it decides when to stop, and says why a start failed. */
  readonly isSupervised?: boolean
  /** See StopRequestOptions. */
  readonly npmPid?: (() => number) | undefined
  /**
   * Imports the code of the app, and returns the function that starts it. Under a supervisor that waits for earlier processes. A start that may
   * take long rejects with the reason of `stopping`.
   */
  readonly load: () => Promise<(stopping: AbortSignal) => Promise<App>>
}

const never = new Promise<never>(() => undefined)

/**
 * Runs an app and returns the exit code once it has stopped. A signal or the exit of the supervisor stops it gracefully; a second
 * signal exits at once. An uncaught error ends the process, and its supervisor restarts it.
 */
export async function runApp(options: RunAppOptions): Promise<number> {
  const { name, shutdownSeconds, logger, clock, isSupervised = false, npmPid, load } = options
  const crash = (error: unknown) => {
    logger.fatal({ err: error }, 'unexpected error; exiting')
    process.exit(70)
  }
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', crash)

  // A full disk or a reader that is gone must not end a server.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

  let app: App | undefined
  const onRepeated = () => {
    app?.kill?.()
    process.exit(1)
  }
  const hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor))
  const stopRequested = stopRequest({ source: process, isSupervised, hasTerminal, npmPid, clock, onRepeated })

  const stopping = new AbortController()
  void stopRequested.then((reason) => stopping.abort(reason))

  const permission = isSupervised ? startPermission() : Promise.resolve()

  // Other timers do not keep the process alive. This one does while the app runs.
  const alive = setInterval(() => undefined, 0x7fffffff)
  try {
    const start = await load()
    // If both are settled, the request to stop decides: nothing has started yet.
    if (!(await Promise.race([stopRequested.then(() => false), permission.then(() => true)]))) return 0
    app = await start(stopping.signal)
    await tellParent({ type: 'ready' })
    logger.info({}, `${name} started`)
    new IdleTrimmer({ clock }).start()
    const end = await Promise.race([stopRequested, app.failed ?? never, app.finished ?? never])
    if (end instanceof Error) await reportStartFailure(end, options)
    else if (typeof end === 'string') {
      logger[isSupervised ? 'info' : 'notice']({ reason: end }, `${name} stopping`)
      if (end !== supervisorExited) await app.leave?.()
    }
    await app.stop(AbortSignal.timeout(shutdownSeconds * 1000))
    return end instanceof Error ? 1 : typeof end === 'number' ? end : 0
  } catch (error) {
    if (stopping.signal.aborted && error === stopping.signal.reason) return 0
    if (app === undefined) await reportStartFailure(error, options)
    else logger.fatal({ reason: errorMessage(error), err: error }, `${name} failed to stop`)
    return 1
  } finally {
    clearInterval(alive)
    // An open channel to the supervisor would keep the process alive as well.
    if (process.connected) process.disconnect?.()
  }
}

/** Resolves when the supervisor lets this process start. */
function startPermission(): Promise<void> {
  return new Promise((resolve) => {
    process.on('message', (message) => {
      if (isMessage(message, 'start')) resolve()
    })
  })
}

/** Reports why the start failed, to the supervisor if there is one: then it prints the sentence. */
async function reportStartFailure(error: unknown, { name, logger, isSupervised = false }: RunAppOptions): Promise<void> {
  const event = `${name} failed to start`
  const problem = startProblem(error)
  // A stack would only hide what the operator can do.
  if (problem === undefined) logger.fatal({ reason: errorMessage(error), err: error }, event)
  else if (!isSupervised) logger.fatal({ reason: problem }, event)
  if (isSupervised) await tellParent({ type: 'failed', reason: problem ?? `${event}: ${errorMessage(error)}` })
}

/** Resolves once the message is sent, or if no parent listens. */
async function tellParent(message: ChildReport): Promise<void> {
  await new Promise<void>((resolve) => {
    if (process.send === undefined || !process.connected) resolve()
    else process.send(message, undefined, undefined, () => resolve())
  })
}
