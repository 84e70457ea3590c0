import type { RequestOptions } from 'node:https'
import { localControlUrl, localIngestUrl } from '#config/addresses.ts'
import type { Config } from '#config/config.ts'
import { MiB } from '#lib/bytes.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { clientOf } from '#lib/http.ts'
import { disableInspector } from '#lib/inspector.ts'
import { system } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Paint } from '#lib/text-lines.ts'
import { supervisedEnvironment } from '#node/child-messages.ts'
import { type ChildSpec, Supervisor } from '#node/supervisor.ts'
import { describeStart, formatBanner } from './banner.ts'
import { type Bootstrapped, readBootstrapped, readFirstLink } from './bootstrapped.ts'
import { type ChildName, environmentOf } from './child-environment.ts'
import { formatFirstKey, formatFirstLink, keepFirstKey, keepFirstLink } from './first-key.ts'
import { logFormatOf } from './open-log.ts'
import type { App } from './run-app.ts'

/**
 * In MiB, half of what V8 would take for ingest. Neither process is faster with a larger young generation. With one of 4, ingest would
 * collect more often while thousands of messages wait for the disk.
 */
const nodeFlags: Partial<Record<ChildName, readonly string[]>> = {
  delivery: ['--max-semi-space-size=2'],
  ingest: ['--max-semi-space-size=8'],
}

/**
 * For glibc. Few threads allocate, so one arena is enough: each costs up to a megabyte. Large blocks are returned to the system when they
 * are freed. Ingest keeps the defaults: these settings would save it 2 MB and could slow down its Buffers.
 */
const mallocSettings = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: String(MiB) }

const readyPollMs = 100
const readyTimeoutMs = 2_000

export type SuperviseOptions = {
  readonly config: Config
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Path of the program, to start the children. */
  readonly program: string
  readonly children: readonly ChildName[]
  readonly print: (text: string) => void
  /** Whether a person reads what `print` writes, and nothing keeps it. */
  readonly isTerminal: boolean
  readonly paint: Paint
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Starts the processes under one supervisor, and prints the banner once they are ready, or logs it if the log is JSON. They stop in
 * reverse order: ingest seals, delivery uploads what it can, and control runs to the end to record the commits. Resolves before they are
 * ready.
 */
export async function superviseProcesses(options: SuperviseOptions): Promise<App> {
  const { config, environment, program, children, clock, logger, print, paint } = options
  let bootstrapped: Bootstrapped | undefined
  let link: string | undefined
  const specs = children.map(
    (name): ChildSpec => ({
      name,
      // Ingest and delivery of an installation that cannot start must not register with a control process of another one.
      startsFirst: name === 'control',
      command: process.execPath,
      args: [disableInspector, ...(nodeFlags[name] ?? []), program, name],
      environment: {
        ...(name === 'ingest' ? {} : mallocSettings),
        UV_THREADPOOL_SIZE: '8',
        ...environmentOf(name, environment),
        ...supervisedEnvironment,
      },
      onMessage: (message) => {
        bootstrapped = readBootstrapped(message) ?? bootstrapped
        link = readFirstLink(message) ?? link
      },
    }),
  )
  const supervisor = new Supervisor({ ...system, children: specs, clock, logger })
  const started = supervisor.start()
  const stopping = new AbortController()
  const stopped = Promise.withResolvers<void>()
  const urls = [
    ...(children.includes('control') ? [localControlUrl(config)] : []),
    ...(children.includes('ingest') ? [localIngestUrl(config)] : []),
  ]
  const servesAll = started.then(
    () => waitUntilReady(urls, clock, stopping.signal),
    () => false,
  )
  const greeted = servesAll.then(async (ready) => {
    // Until it has ended, control may create the first key.
    if (!ready) await stopped.promise
    const format = logFormatOf(config)
    const { isTerminal } = options
    const firstKey = await keepFirstKey(bootstrapped?.api_key, { path: config.paths.firstApiKey, isTerminal, logger })
    const firstLink = await keepFirstLink(link, { path: config.paths.signInLink, isTerminal, logger })
    if (ready && format === 'text') {
      print(formatBanner({ config, children, bootstrapped, firstKey, firstLink, paint }))
      return
    }
    if (ready) logger.info(describeStart({ config, children, bootstrapped }), 'inlet running')
    // Without the banner the key would be lost: only its hash is stored, and log lines never have a key.
    if (firstKey !== undefined) print(formatFirstKey(firstKey, format))
    if (firstLink !== undefined) print(formatFirstLink(firstLink, format))
  })
  const failed = Promise.withResolvers<Error>()
  started.catch(failed.resolve)
  return {
    failed: failed.promise,
    kill: () => supervisor.kill(),
    async stop(signal) {
      stopping.abort()
      await supervisor.stop(signal)
      stopped.resolve()
      await greeted
    },
  }
}

/** Waits until all URLs are ready. Returns false if the signal aborts first. */
async function waitUntilReady(urls: readonly string[], clock: Clock, signal: AbortSignal): Promise<boolean> {
  for (const url of urls) {
    while (!signal.aborted && !(await isReady(url, signal))) await sleep(clock, readyPollMs, signal)
  }
  return !signal.aborted
}

async function isReady(url: string, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const options = { agent: false, signal: AbortSignal.any([signal, AbortSignal.timeout(readyTimeoutMs)]) }
  // This process started the server and sends it no secret, so its certificate need not match the address.
  const request = clientOf(url).request(`${url}/readyz`, { ...options, rejectUnauthorized: false } as RequestOptions)
  request.on('response', (response) => {
    response.resume()
    resolve(response.statusCode === 200)
  })
  request.on('error', () => resolve(false))
  request.end()
  return promise
}
