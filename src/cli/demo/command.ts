import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'
import type { CliContext } from '../context.ts'
import { type Output, Progress } from '../progress.ts'
import { viewFor } from './definitions.ts'
import { generateEvents } from './events.ts'
import { ManagementApi } from './management-api.ts'
import { report } from './report.ts'
import { send } from './send.ts'
import { sendOverMqtt } from './send-mqtt.ts'
import { type DemoServer, startServer } from './server.ts'

const batchLines = 500
const batchBytesMax = 4_000_000
const fileBytesMax = 1024 ** 3
/** Of the events, this share goes over MQTT. */
const mqttShare = 0.25

export type DemoFlags = {
  readonly file?: string
  readonly events: number
  readonly seed: number
  readonly keep: boolean
}

const Made = z.object({ id: z.string() })
const Status = z.object({ status: z.string(), status_reasons: z.array(z.string()) })
const Commits = z.object({
  items: z.array(z.object({ node_id: z.string(), seq: z.number() })),
  next_cursor: z.string().nullable(),
})

export async function runDemo(this: CliContext, { file, events, seed, keep }: DemoFlags): Promise<void> {
  const { stdout } = this.process
  const lines = file === undefined ? [...generateEvents(events, seed)] : await readLines(file)
  if (lines.length === 0) throw new UserError(`${file} has no lines`)

  stdout.write('\n  Starting a separate server for the demo …\n')
  await using server = await startServer(this.program, { keep })
  await run(server, lines, file === undefined, stdout)
  if (keep) stdout.write(`The data stays in ${server.dataDirectory}\n\n`)
}

async function run(server: DemoServer, lines: readonly string[], isGenerated: boolean, stdout: Output): Promise<void> {
  const api = new ManagementApi({ url: server.apiUrl, apiKey: server.apiKey })
  const prefix = 'demo'
  const destination = await api.post(
    '/v1/destinations',
    { name: 'demo', bucket: 'demo-bucket', prefix, region: 'local', role_arn: 'arn:aws:iam::000000000000:role/inlet-demo' },
    Made,
  )
  await api.post(`/v1/destinations/${destination.id}/validate`, undefined, Made)
  const endpoint = await api.post(
    '/v1/endpoints',
    {
      region: 'loc',
      destination_id: destination.id,
      segment_max_age_seconds: 2,
      output_formats: ['segments', 'parquet', 'parquet_views'],
      mqtt_config: {},
    },
    Made,
  )
  const { name, definition } = viewFor(
    lines.slice(0, 1_000).map((line) => Buffer.from(line, 'latin1').toString('utf8')),
    isGenerated,
  )
  const view = await api.post('/v1/views', { name, definition, description: 'made by the demo' }, Made)
  await api.post(`/v1/views/${view.id}/publish`, undefined, Made)
  await api.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: view.id }, Made)
  stdout.write(`  Made a destination, an endpoint and the view ${name} with ${definition.columns.length} columns\n\n`)
  await until('the endpoint to be active', async () => {
    const { status, status_reasons } = await api.get(`/v1/endpoints/${endpoint.id}`, Status)
    return status === 'active' ? undefined : [status, ...status_reasons].join(': ')
  })

  const startedAt = performance.now()
  const mqttLines = lines.slice(0, Math.floor(lines.length * mqttShare))
  const publishing = new Progress({ output: stdout, label: 'MQTT', total: mqttLines.length })
  const shown = (messages: number) => publishing.show(messages, `${messages} messages acknowledged`)
  // First: segments are committed in order, so the commits that the receipts of HTTP wait for come after those of all this.
  if (mqttLines.length > 0) {
    await sendOverMqtt({
      url: `${server.ingestUrl.replace('http', 'ws')}/mqtt?endpoint=${endpoint.id}`,
      apiKey: server.apiKey,
      topic: 'demo/events',
      lines: mqttLines,
      onAcknowledged: shown,
    })
  }
  const sending = new Progress({ output: stdout, label: 'HTTP', total: lines.length - mqttLines.length })
  const sent = await send({
    url: `${server.ingestUrl}/v1/ingest?endpoint=${endpoint.id}`,
    apiKey: server.apiKey,
    batches: inBatches(lines.slice(mqttLines.length)),
    parallel: 4,
    onSent: (records, bytes) => sending.show(records, `${(bytes / 1e6).toFixed(1)} MB acknowledged`),
  })
  sending.show(lines.length, `${(sent.bytes / 1e6).toFixed(1)} MB acknowledged`)
  const sentSeconds = (performance.now() - startedAt) / 1000

  const delivering = new Progress({ output: stdout, label: 'delivering', total: sent.segments.size })
  await until('the commits', async () => {
    const missing = new Set(sent.segments)
    for (let cursor: string | null = ''; cursor !== null && missing.size > 0; ) {
      const page: z.output<typeof Commits> = await api.get(
        `/v1/endpoints/${endpoint.id}/commits?limit=200${cursor && `&before=${cursor}`}`,
        Commits,
      )
      for (const { node_id, seq } of page.items) missing.delete(`${node_id}/${seq}`)
      cursor = page.next_cursor
    }
    delivering.show(
      sent.segments.size - missing.size,
      `${sent.segments.size - missing.size} of ${sent.segments.size} segments committed`,
    )
    return missing.size === 0 ? undefined : `${missing.size} segments are not committed yet`
  })
  const allSeconds = (performance.now() - startedAt) / 1000
  stdout.write(
    `\n  ${(sent.records + mqttLines.length).toLocaleString('en-US')} records were acknowledged in ${sentSeconds.toFixed(1)} s and readable after ${allSeconds.toFixed(1)} s\n\n`,
  )
  const bucket = join(server.dataDirectory, 'buckets', 'demo-bucket')
  stdout.write(`${await report({ bucket, prefix, endpointId: endpoint.id, viewName: name })}\n`)
}

/** Asks until nothing is left to wait for; the answer says what is. */
async function until(what: string, ask: () => Promise<string | undefined>): Promise<void> {
  const deadline = performance.now() + 120_000
  for (;;) {
    const waitingFor = await ask()
    if (waitingFor === undefined) return
    if (performance.now() > deadline) throw new Error(`waited two minutes for ${what}: ${waitingFor}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

function* inBatches(lines: readonly string[]): Iterable<readonly string[]> {
  let batch: string[] = []
  let bytes = 0
  for (const line of lines) {
    if (batch.length === batchLines || bytes + line.length > batchBytesMax) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(line)
    bytes += line.length
  }
  if (batch.length > 0) yield batch
}

/** Lines as byte strings: latin1 keeps every byte as it is. */
async function readLines(path: string): Promise<readonly string[]> {
  const { size } = await stat(path).catch((error: unknown) => {
    throw new UserError(`cannot read ${path}: ${errorCode(error) ?? String(error)}`)
  })
  if (size > fileBytesMax) throw new UserError(`${path} is too large for the demo, which takes files up to 1 GiB`)
  const lines: string[] = []
  for await (const line of createInterface({ input: createReadStream(path, 'latin1'), crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() !== '') lines.push(line)
  }
  return lines
}
