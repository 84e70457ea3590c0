import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { newApiKey } from '#auth/secrets.ts'
import { environment } from '#config.ts'

export type DemoServer = AsyncDisposable & {
  readonly apiUrl: string
  readonly ingestUrl: string
  readonly apiKey: string
  readonly dataDirectory: string
}

const readyMsMax = 30_000
const pollMs = 50

/** Starts a separate Inlet with free ports, its own API key, and a temporary data directory. */
export async function startServer(program: string, { keep }: { readonly keep: boolean }): Promise<DemoServer> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'inlet-demo-'))
  const [control, ingest] = [await freePort(), await freePort()]
  const { secret } = newApiKey()
  const child = spawn(process.execPath, [program, 'start'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: environment['PATH'],
      INLET_DATA_DIR: dataDirectory,
      INLET_CONTROL_LISTEN: `127.0.0.1:${control}`,
      INLET_INGEST_LISTEN: `127.0.0.1:${ingest}`,
      INLET_BOOTSTRAP_API_KEY: secret,
      INLET_LOG_LEVEL: 'error',
      INLET_SHUTDOWN_SECONDS: '10',
    },
  })
  const exited = once(child, 'exit')
  const server: DemoServer = {
    apiUrl: `http://127.0.0.1:${control}`,
    ingestUrl: `http://127.0.0.1:${ingest}`,
    apiKey: secret,
    dataDirectory,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await exited
      if (!keep) await rm(dataDirectory, { recursive: true, force: true })
    },
  }
  try {
    await Promise.race([
      waitUntilReady([server.apiUrl, server.ingestUrl]),
      exited.then(() => Promise.reject(new Error('the demo server exited during startup; see its log above'))),
    ])
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
  return server
}

async function waitUntilReady(urls: readonly string[]): Promise<void> {
  const deadline = performance.now() + readyMsMax
  for (const url of urls) {
    for (;;) {
      const response = await fetch(`${url}/readyz`).catch(() => undefined)
      await response?.body?.cancel()
      if (response?.ok === true) break
      if (performance.now() > deadline) throw new Error(`${url} was not ready after 30 seconds`)
      await setTimeout(pollMs)
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('the operating system did not assign a port')
  return address.port
}
