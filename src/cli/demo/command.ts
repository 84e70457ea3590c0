/** `inlet demo`: the steps of a new user, over the public interfaces of a server that runs only for the demo. */
import { join } from 'node:path'
import { type Client, createClient } from '#client/client.ts'
import type { Clock } from '#lib/clock.ts'
import type { CliContext } from '../terminal/context.ts'
import { type Output, Progress } from '../terminal/progress.ts'
import { viewFor } from './definitions.ts'
import { generateEvents } from './events.ts'
import { readLines } from './lines.ts'
import { patienceMs, waitFor } from './patience.ts'
import { formatReport } from './report.ts'
import { sendOverHttp } from './send.ts'
import { sendOverMqtt } from './send-mqtt.ts'
import { type DemoServer, startServer } from './server.ts'

/** Share of the events that is sent over MQTT. */
const mqttShare = 0.25
/** The report is at most this wide. */
const columnsMax = 100
const bucket = 'demo-bucket'
const prefix = 'demo'

export type DemoFlags = {
  readonly file?: string
  readonly events: number
  readonly seed: number
  readonly keep: boolean
}

type Steps = { readonly client: Client; readonly stdout: Output; readonly clock: Clock }
type Resources = { readonly endpointId: string; readonly viewName: string }

export async function runDemo(this: CliContext, flags: DemoFlags): Promise<void> {
  const { stdout } = this.process
  const { file, events, seed, keep } = flags
  const lines = file === undefined ? [...generateEvents(events, seed)] : await readLines(file)
  stdout.write('\n  Starting a separate server for the demo …\n')
  const { program, clock } = this
  await using server = await startServer({ program, clock, keep, isTerminal: stdout.isTTY === true })
  await Promise.race([runSteps(this, server, lines, flags), server.ended])
}

async function runSteps(
  { clock, process: { stdout } }: CliContext,
  server: DemoServer,
  lines: readonly string[],
  { file, keep }: DemoFlags,
): Promise<void> {
  const client = createClient({ url: server.apiUrl, apiKey: server.apiKey, timeoutMs: patienceMs })
  const steps = { client, stdout, clock }
  const resources = await createResources(steps, lines, file === undefined)
  const startedAt = performance.now()
  const secondsSince = () => ((performance.now() - startedAt) / 1000).toFixed(1)
  const segments = await sendAll(server, resources, lines, stdout)
  const sentSeconds = secondsSince()
  await waitForCommits(steps, resources, segments)
  stdout.write(
    `\n  ${lines.length.toLocaleString('en-US')} records were acknowledged in ${sentSeconds} s and readable after ${secondsSince()} s\n\n`,
  )
  const directory = join(server.dataDirectory, 'buckets', bucket)
  const width = Math.min(stdout.columns ?? columnsMax, columnsMax)
  stdout.write(`${await formatReport({ bucket: directory, prefix, ...resources, width })}\n`)
  if (keep) stdout.write(`The data stays in ${server.dataDirectory}\n\n`)
}

/** Creates a destination, an endpoint and a view that suits the lines, and waits until the endpoint is active. */
async function createResources(
  { client, stdout, clock }: Steps,
  lines: readonly string[],
  isGenerated: boolean,
): Promise<Resources> {
  const destination = await client.createDestination({
    ...{ name: 'demo', bucket, prefix, region: 'local' },
    role_arn: 'arn:aws:iam::000000000000:role/inlet-demo',
  })
  await client.validateDestination(destination.id)
  const endpoint = await client.createEndpoint({
    region: 'loc',
    destination_id: destination.id,
    segment_max_age_seconds: 2,
    output_formats: ['segments', 'parquet', 'parquet_views'],
    mqtt_config: {},
  })
  const samples = lines.slice(0, 1_000).map((line) => Buffer.from(line, 'latin1').toString('utf8'))
  const { name, definition } = viewFor(samples, isGenerated)
  const view = await client.createView({ name, definition, description: 'created by the demo' })
  await client.publishView(view.id)
  await client.attachView(endpoint.id, { view_id: view.id })
  stdout.write(`  Created a destination, an endpoint and the view ${name} with ${definition.columns.length} columns\n\n`)
  const whyNotActive = async () => {
    const { status, status_reasons } = await client.getEndpoint(endpoint.id)
    return status === 'active' ? undefined : [status, ...status_reasons].join(': ')
  }
  await waitFor('the endpoint to be active', whyNotActive, clock)
  return { endpointId: endpoint.id, viewName: name }
}

/**
 * Sends all lines and returns the segments named by the HTTP receipts. MQTT has no receipts, so it is sent first: segments are
 * committed in order, so once these are committed, everything sent over MQTT is too.
 */
async function sendAll(
  server: DemoServer,
  { endpointId }: Resources,
  lines: readonly string[],
  stdout: Output,
): Promise<ReadonlySet<string>> {
  const { apiKey, ingestUrl } = server
  const mqttLines = lines.slice(0, Math.floor(lines.length * mqttShare))
  const httpLines = lines.slice(mqttLines.length)
  const publishing = new Progress({ output: stdout, label: 'MQTT', total: mqttLines.length })
  if (mqttLines.length > 0) {
    await sendOverMqtt({
      url: `${ingestUrl.replace('http', 'ws')}/mqtt?endpoint=${endpointId}`,
      apiKey,
      topic: 'demo/events',
      lines: mqttLines,
      onAcknowledged: (messages) => publishing.show(messages, `${messages} messages acknowledged`),
    })
  }
  const posting = new Progress({ output: stdout, label: 'HTTP', total: httpLines.length })
  return sendOverHttp({
    ...{ url: ingestUrl, apiKey, endpoint: endpointId, lines: httpLines },
    onStored: (records, bytes) => posting.show(records, `${(bytes / 1e6).toFixed(1)} MB acknowledged`),
  })
}

async function waitForCommits(
  { client, stdout, clock }: Steps,
  { endpointId }: Resources,
  segments: ReadonlySet<string>,
): Promise<void> {
  const delivering = new Progress({ output: stdout, label: 'delivering', total: segments.size })
  const describeMissing = async () => {
    const missing = new Set(segments)
    for await (const { node_id, seq } of client.listCommits(endpointId)) {
      missing.delete(`${node_id}/${seq}`)
      if (missing.size === 0) break
    }
    const committed = segments.size - missing.size
    delivering.show(committed, `${committed} of ${segments.size} segments committed`)
    return missing.size === 0 ? undefined : `${missing.size} segments are not committed yet`
  }
  await waitFor('the commits', describeMissing, clock)
}
