/**
 * A data directory in which every feature left its files, as real processes wrote them and a kill left them behind.
 *
 * Owns: what is in it. Does not own: which kinds of files there are (kinds.ts), and what damage does to them.
 */
import { createHash } from 'node:crypto'
import { cpSync, readdirSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import mqtt from 'mqtt'
import { dataPaths } from '#config/data-paths.ts'
import { readCounts } from '#ingest/idempotency/request-counts.ts'
import { STORED_REQUEST_BYTES } from '#ingest/idempotency/stored-request.ts'
import { systemFiles } from '#lib/files.ts'
import { openStore } from '#store/store.ts'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

export const bucket = 'lake'

const view = {
  name: 'numbers',
  definition: { columns: [{ name: 'n', type: 'INTEGER', path: '$.n', required: true }] },
}

/** Records of each endpoint that were acknowledged, by where the kill left them. */
export type Populated = {
  readonly directory: string
  readonly delivered: string
  /** Its segments wait for a destination. */
  readonly held: string
  readonly accepted: Readonly<Record<string, number>>
  /** A digest of the rows of its database. */
  readonly rows: string
}

/** Starts an installation, uses it, and kills it. The directory is removed with the installation. */
export async function populate(): Promise<Populated & AsyncDisposable> {
  const inlet = await Installation.create({ environment: { INLET_LOG_LEVEL: 'warn' } })
  try {
    return { ...(await useAndKill(inlet)), [Symbol.asyncDispose]: () => inlet[Symbol.asyncDispose]() }
  } catch (error) {
    // Otherwise its processes would outlive the test.
    await inlet[Symbol.asyncDispose]()
    throw error
  }
}

async function useAndKill(inlet: Installation): Promise<Populated> {
  const accepted: Record<string, number> = {}
  const send = async (id: string, numbers: readonly (number | string)[], key?: string) => {
    const body = numbers.map((n) => `${JSON.stringify({ n })}\n`).join('')
    const headers = key === undefined ? {} : { 'idempotency-key': key }
    const response = await fetch(`${inlet.ingestUrl}/v1/ingest?endpoint=${id}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${inlet.apiKey}`, 'content-type': 'application/x-ndjson', ...headers },
      body,
    })
    if (response.status !== 202) throw new Error(`${response.status} ${await response.text()}`)
    accepted[id] = (accepted[id] ?? 0) + numbers.length
  }
  await inlet.start('control', 'ingest', 'delivery')
  const { id: delivered } = await inlet.endpoint({ bucket, view })
  const withMqtt = { region: 'loc', segment_max_age_seconds: 1, mqtt_config: {} }
  const { id: held } = await inlet.ok('POST', '/v1/endpoints', withMqtt)
  await inlet.untilConfigured(held, undefined)
  for (let segment = 0; segment < 3; segment += 1) {
    await send(delivered, [segment, 'no number'], `key-${segment}`)
    await send(held, [segment], `held-${segment}`)
    await inlet.committed(delivered, [segment])
  }
  await publish(inlet, held)
  accepted[held] = (accepted[held] ?? 0) + 1
  await compact(inlet, delivered)
  // Reports that do not reach control stay in the outbox.
  await inlet.kill('control')
  await send(delivered, [7, 8], 'in-the-outbox')
  await until('a report in the outbox', async () => (await readdir(join(inlet.directory, 'node/outbox'))).length > 0, 30_000)
  // Counts are lower bounds, written a moment later: what is not counted yet is not missed either.
  await until('the counts of keys', () => areKeysCounted(inlet.directory), 30_000)
  const { recordedCommits } = dataPaths(inlet.directory)
  await until('the number of recorded commits', async () => (await systemFiles.bytes(recordedCommits)) !== undefined, 30_000)
  await send(held, [9], 'open')
  await inlet.kill('ingest')
  await inlet.kill('delivery')
  const rows = await readRowsOfCopy(inlet.directory)
  return { directory: inlet.directory, delivered, held, accepted, rows }
}

/** Sends a record over MQTT. */
async function publish(inlet: Installation, endpoint: string): Promise<void> {
  const url = `${inlet.ingestUrl.replace('http', 'ws')}/mqtt?endpoint=${endpoint}`
  const client = await mqtt.connectAsync(url, { username: 'anybody', password: inlet.apiKey, reconnectPeriod: 0 })
  try {
    await client.publishAsync('numbers', '{"n":1}', { qos: 1 })
  } finally {
    await client.endAsync(true)
  }
}

async function compact(inlet: Installation, endpoint: string): Promise<void> {
  const job = await inlet.ok('POST', `/v1/endpoints/${endpoint}/compact`, { to: new Date(Date.now() + 60_000).toISOString() })
  await until('the compaction', async () => (await inlet.ok('GET', `/v1/jobs/${job.id}`)).finished_at !== null, 30_000)
  const { status } = await inlet.ok('GET', `/v1/jobs/${job.id}`)
  if (status !== 'succeeded') throw new Error(`the compaction ended as ${status}`)
}

async function areKeysCounted(directory: string): Promise<boolean> {
  const { storedRequests } = dataPaths(directory)
  const counts = await readCounts(systemFiles, storedRequests)
  const files = (await readdir(storedRequests)).filter((name) => name.endsWith('.requests'))
  const isCounted = async (name: string) => {
    const bytes = await systemFiles.bytes(join(storedRequests, name))
    return counts?.hours.get(Number.parseInt(name, 10))?.written === (bytes ?? 0) / STORED_REQUEST_BYTES
  }
  return files.length > 0 && (await Promise.all(files.map(isCounted))).every((is) => is)
}

export async function listFiles(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => relative(directory, join(parentPath, name)))
    .sort()
}

/** Copies a data directory. With fs.cp, a copy takes many times as much of the processor. */
export function copyData(from: string, to: string, { withBuckets }: { readonly withBuckets: boolean }): void {
  for (const name of readdirSync(from))
    if (withBuckets || name !== 'buckets') cpSync(join(from, name), join(to, name), { recursive: true, preserveTimestamps: true })
}

async function readRowsOfCopy(directory: string): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'inlet-rows-'))
  copyData(directory, copy, { withBuckets: false })
  const rows = await readRows(copy)
  await rm(copy, { recursive: true })
  return rows
}

/** Columns that control observes again by itself, and writes without a new epoch. Losing the last of them loses nothing. */
const observed = new Set(['last_used_at', 'provisioned_at', 'validated_at', 'validation_claimed_at', 'compacted_until'])

/** Returns a digest of the rows that matter. Opening a database changes its files. */
export async function readRows(data: string): Promise<string> {
  const store = await openStore(dataPaths(data).database, { mustExist: true })
  try {
    const tables = ['endpoints', 'commits', 'destinations', 'views', 'api_keys', 'compactions', 'compacted_artifacts'] as const
    const rows: unknown[] = []
    for (const table of tables) rows.push(await store.db.selectFrom(table).selectAll().execute())
    return createHash('sha256')
      .update(JSON.stringify(rows, (name, value) => (observed.has(name) ? null : value)))
      .digest('hex')
  } finally {
    await store.close()
  }
}
