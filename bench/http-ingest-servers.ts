/** The two servers that http-ingest.ts compares, each in a process of its own: `node http-ingest-servers.ts floor|inlet DIRECTORY`. */
import { closeSync, fdatasync, ftruncateSync, openSync, writev } from 'node:fs'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { apiKeyOf } from '#auth/secrets.ts'
import { readConfig } from '#config.ts'
import { startIngest } from '#ingest/app.ts'
import { systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { segmentLimits } from '#model/limits.ts'
import type { Snapshot } from '#model/snapshot.ts'

export const benchKey = `ing_live_${'b'.repeat(32)}`

/** What the parent asks between two rounds. */
export type Question = 'usage' | 'clean' | 'stop'
export type ServerMessage =
  | { readonly ready: string }
  /** Microseconds of CPU since the start. */
  | { readonly usage: number }
  | { readonly cleaned: true }

type Running = { readonly url: string; clean(): Promise<void>; stop(): Promise<void> }

/** The least that a durable answer over HTTP costs: read the body, one writev and one fdatasync for all that wait, 202. */
async function startFloor(directory: string): Promise<Running> {
  const file = openSync(join(directory, 'floor'), 'w')
  let position = 0
  let waiting: { chunks: Buffer[]; response: ServerResponse }[] = []
  let writing = false

  const flush = () => {
    if (waiting.length === 0) {
      writing = false
      return
    }
    writing = true
    const group = waiting
    waiting = []
    const chunks = group.flatMap((entry) => entry.chunks)
    writev(file, chunks, position, (writeError, written) => {
      if (writeError !== null) throw writeError
      position += written
      fdatasync(file, (syncError) => {
        if (syncError !== null) throw syncError
        for (const { response } of group) response.writeHead(202).end('{"accepted":true}')
        flush()
      })
    })
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      waiting.push({ chunks, response })
      if (!writing) setImmediate(flush)
      writing = true
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    clean: async () => {
      ftruncateSync(file)
      position = 0
    },
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      closeSync(file)
    },
  }
}

/** The ingest process as it is shipped, with a key and an endpoint from its stored snapshot. */
async function startInlet(directory: string): Promise<Running> {
  const config = readConfig({
    INLET_DATA_DIR: directory,
    INLET_NODE_TOKEN: 'n'.repeat(32),
    INLET_CONTROL_URL: 'http://127.0.0.1:1',
    INLET_INGEST_LISTEN: '127.0.0.1:0',
    INLET_LOG_LEVEL: 'error',
  })
  const accountId = newId()
  const snapshot: Snapshot = {
    epoch: 1,
    region: 'loc',
    keys: [{ id: newId(), account_id: accountId, hash: apiKeyOf(benchKey).hash, scopes: ['ingest'] }],
    revoked_keys: [],
    jwks: { keys: [] },
    token_issuer: 'http://127.0.0.1:1',
    endpoints: [
      {
        id: newId(),
        account_id: accountId,
        ingest_host: '127.0.0.1:8081',
        desired_state: 'active',
        segment_bytes: segmentLimits.bytesDefault,
        segment_max_age_seconds: 60,
        output_formats: ['parquet'],
        mqtt_config: null,
        destination: null,
        views: [],
        committed_seq: -1,
      },
    ],
  }
  await mkdir(dirname(config.paths.ingestSnapshot), { recursive: true })
  await writeFile(config.paths.ingestSnapshot, JSON.stringify(snapshot))
  const app = await startIngest(config, { logger: createLogger('bench', config.logLevel), clock: systemClock })
  return {
    url: app.url,
    // As delivery does once a segment is committed.
    clean: async () => {
      for (const name of await readdir(config.paths.wal, { recursive: true })) {
        if (name.endsWith('.wal')) await rm(join(config.paths.wal, name))
      }
    },
    stop: () => app.stop(AbortSignal.timeout(5_000)),
  }
}

if (import.meta.main) {
  const [kind, directory = ''] = process.argv.slice(2)
  const running = await (kind === 'floor' ? startFloor(directory) : startInlet(directory))
  const tell = (message: ServerMessage) => process.send?.(message)
  process.on('message', async (question: Question) => {
    if (question === 'usage') {
      const { user, system } = process.cpuUsage()
      tell({ usage: user + system })
    } else if (question === 'clean') {
      await running.clean()
      tell({ cleaned: true })
    } else {
      await running.stop()
      process.exit(0)
    }
  })
  tell({ ready: running.url })
}
