import { request } from 'node:http'
import { request as requestSecurely } from 'node:https'
import { z } from 'zod'
import { readOrMakeNodeToken } from '#auth/node-token.ts'
import { type Config, httpUrl } from '#config.ts'
import { MiB } from '#lib/bytes.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import { type ChildSpec, Supervisor } from '#node/supervisor.ts'
import type { App } from './run-app.ts'

/** What control says when it made the first account. */
export const Bootstrapped = z.object({
  type: z.literal('bootstrapped'),
  /** Null where the operator brought a key. */
  api_key: z.string().nullable(),
  endpoint_id: z.string(),
})
export type Bootstrapped = z.infer<typeof Bootstrapped>

export type ChildName = 'control' | 'delivery' | 'ingest'

/** Delivery turns records into short-lived strings: more room for them is no faster. */
const flags: Partial<Record<ChildName, readonly string[]>> = { delivery: ['--max-semi-space-size=2'] }

/** For glibc: DuckDB works in few threads, so one heap does for all, and what is large goes back to the system once it is freed. */
const memoryBound = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: String(MiB) }

export type StartOptions = {
  readonly config: Config
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Path of the program, to start the children with. */
  readonly program: string
  readonly children: readonly ChildName[]
  readonly print: (text: string) => void
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Starts the processes under one supervisor. They are stopped in reverse: ingest seals, delivery works off what it can, and
 * control is there to the end to take the commits.
 */
export async function startProcesses(options: StartOptions): Promise<App> {
  const { config, environment, program, children, clock, logger, print } = options
  const nodeToken = config.nodeToken ?? (await readOrMakeNodeToken(config.paths.nodeToken))
  let bootstrapped: Bootstrapped | undefined
  const specs = children.map(
    (name): ChildSpec => ({
      name,
      command: process.execPath,
      args: [...(flags[name] ?? []), program, name],
      environment: {
        ...(name === 'delivery' ? memoryBound : {}),
        UV_THREADPOOL_SIZE: '8',
        ...environment,
        INLET_NODE_TOKEN: nodeToken,
      },
      onMessage: (message) => {
        bootstrapped = Bootstrapped.safeParse(message).data ?? bootstrapped
      },
    }),
  )
  const supervisor = new Supervisor({ children: specs, clock, logger })
  await supervisor.start()

  const stopping = new AbortController()
  const urls = [
    ...(children.includes('control') ? [httpUrl(config.controlListen)] : []),
    ...(children.includes('ingest') ? [ingestUrl(config)] : []),
  ]
  const announced = announce(urls, clock, stopping.signal, () => print(banner(config, bootstrapped)))
  return {
    async stop(signal) {
      stopping.abort()
      await announced
      await supervisor.stop(signal)
    },
  }
}

/** Calls once when all of them say that they serve. */
async function announce(urls: readonly string[], clock: Clock, signal: AbortSignal, ready: () => void): Promise<void> {
  for (const url of urls) {
    while (!(await isReady(url, signal))) {
      if (signal.aborted) return
      await sleep(clock, 100, signal)
    }
  }
  ready()
}

async function isReady(url: string, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const patience = AbortSignal.any([signal, AbortSignal.timeout(2_000)])
  // It is ours whatever name its certificate has, and nothing is told to it.
  const ask = url.startsWith('https:')
    ? requestSecurely(`${url}/readyz`, { agent: false, signal: patience, rejectUnauthorized: false })
    : request(`${url}/readyz`, { agent: false, signal: patience })
  ask.on('response', (response) => {
    response.resume()
    resolve(response.statusCode === 200)
  })
  ask.on('error', () => resolve(false))
  ask.end()
  return promise
}

function ingestUrl(config: Config): string {
  return httpUrl(config.ingestListen, config.tlsCertificateFile === null ? 'http' : 'https')
}

function mqttUrls(config: Config): readonly string[] {
  const secure = config.tlsCertificateFile !== null
  const direct = config.mqttListen === null ? [] : [httpUrl(config.mqttListen).replace('http', secure ? 'mqtts' : 'mqtt')]
  return [`${ingestUrl(config).replace('http', 'ws')}/mqtt`, ...direct]
}

function banner(config: Config, bootstrapped: Bootstrapped | undefined): string {
  const control = httpUrl(config.controlListen)
  const ingest = ingestUrl(config)
  const lines = [
    '',
    '  Inlet is running.',
    '',
    `  Management API   ${control}/v1      described at ${control}/openapi/openapi.json`,
    `  Ingest           ${ingest}/v1/ingest`,
    `  MQTT             ${mqttUrls(config).join(', ')}      any user name, an API key as the password`,
    `  Data             ${config.paths.data}`,
    '',
  ]
  if (bootstrapped === undefined) {
    lines.push('  API key          the one that the first start showed; `npm run inlet -- keys create` makes another', '')
    return lines.join('\n')
  }
  const key = bootstrapped.api_key ?? '$INLET_BOOTSTRAP_API_KEY'
  lines.push(
    bootstrapped.api_key === null
      ? '  API key          yours, from INLET_BOOTSTRAP_API_KEY'
      : `  API key          ${key}   (shown this once)`,
    '',
    '  Send a first event:',
    '',
    `    curl -X POST '${ingest}/v1/ingest?endpoint=${bootstrapped.endpoint_id}' \\`,
    `      -H ${bootstrapped.api_key === null ? `"X-API-Key: ${key}"` : `'X-API-Key: ${key}'`} -H 'Content-Type: application/x-ndjson' \\`,
    `      --data-binary '{"event":"signup","user":{"id":"u-1"},"amount":12.5,"at":"2026-11-20T08:15:30Z"}'`,
    '',
    ...whatNext(config, bootstrapped.endpoint_id),
    '',
  )
  return lines.join('\n')
}

/** A bucket elsewhere takes a role that only its owner can make. */
function whatNext({ objectStore, paths }: Config, endpointId: string): readonly string[] {
  if (objectStore === 'directory') return [`  Within seconds it is Parquet under ${paths.buckets}/local`]
  return [
    '  It is kept on this machine until the endpoint has a destination. docs/destinations.md shows each step:',
    '',
    '    POST  /v1/destinations                  your bucket; the answer has the policies for its role',
    '    POST  /v1/destinations/{id}/validate',
    `    PATCH /v1/endpoints/${endpointId}   {"destination_id": …}`,
  ]
}
