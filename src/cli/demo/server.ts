import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newApiKey } from '#auth/secrets.ts'
import { environment } from '#config/config.ts'
import type { Clock } from '#lib/clock.ts'
import { disableInspector } from '#lib/inspector.ts'
import { UserError } from '#lib/user-error.ts'
import { waitFor } from './patience.ts'

export type DemoServer = AsyncDisposable & {
  readonly apiUrl: string
  readonly ingestUrl: string
  readonly apiKey: string
  readonly dataDirectory: string
  /** Rejects if the server ends on its own, or this process is told to stop. */
  readonly ended: Promise<never>
}

export type ServerOptions = {
  /** Path of the program, to start the server. */
  readonly program: string
  readonly clock: Clock
  /** Whether to keep the data directory. */
  readonly keep: boolean
  /** Whether a person reads its log. */
  readonly isTerminal: boolean
}

/** Starts a separate Inlet with free ports, its own API key, and a temporary data directory. */
export async function startServer({ program, clock, keep, isTerminal }: ServerOptions): Promise<DemoServer> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'inlet-demo-'))
  const [control, nodeApi, ingest] = await freePorts(3)
  const { secret } = newApiKey()
  const child = spawn(process.execPath, [disableInspector, program, 'start'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: environment['PATH'],
      TERM: environment['TERM'],
      NO_COLOR: environment['NO_COLOR'],
      INLET_DATA_DIR: dataDirectory,
      INLET_CONTROL_LISTEN: `127.0.0.1:${control}`,
      INLET_NODE_API_LISTEN: `127.0.0.1:${nodeApi}`,
      INLET_INGEST_LISTEN: `127.0.0.1:${ingest}`,
      INLET_BOOTSTRAP_API_KEY: secret,
      INLET_LOG_LEVEL: 'error',
      INLET_LOG_FORMAT: isTerminal ? 'text' : 'json',
      INLET_SHUTDOWN_SECONDS: '10',
    },
  })
  const exited = once(child, 'exit')
  const told = Promise.withResolvers<never>()
  // Ends like a failure, so that the server stops and its data is removed. npm passes on a Ctrl-C that the terminal has sent already.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => told.reject(new UserError(`stopped by ${signal}`)))
  }
  const ended = Promise.race([
    told.promise,
    exited.then(() => Promise.reject(new UserError('the server of the demo ended by itself; its log above says why'))),
  ])
  // An end while nobody waits for it must not end this process as well.
  ended.catch(() => undefined)
  const server: DemoServer = {
    apiUrl: `http://127.0.0.1:${control}`,
    ingestUrl: `http://127.0.0.1:${ingest}`,
    apiKey: secret,
    dataDirectory,
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await exited
      if (!keep) await rm(dataDirectory, { recursive: true, force: true })
    },
  }
  try {
    for (const url of [server.apiUrl, server.ingestUrl]) {
      await Promise.race([waitFor('the server of the demo', () => notReadyReason(url), clock), ended])
    }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
  return server
}

async function notReadyReason(url: string): Promise<string | undefined> {
  const response = await fetch(`${url}/readyz`).catch(() => undefined)
  await response?.body?.cancel()
  return response?.ok === true ? undefined : `${url}/readyz says ${response?.status ?? 'nothing'}`
}

/** All are taken at once: the system may assign one again as soon as it is free. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  return servers.map((server) => {
    const address = server.address()
    server.close()
    if (address === null || typeof address === 'string') throw new Error('the operating system did not assign a port')
    return address.port
  })
}
