/** The configurations of docs/senders.md, run as they are shown: with the real program, if it is installed, through a time of refusals. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { examplesFor } from '../../console/src/pages/keys/examples.ts'
import { end, freePort } from '../../tools/services/processes.ts'
import { configurationOf } from '../support/documented.ts'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { until } from '../support/until.ts'

const documentedHost = 'k3v9.fra.ingest.example.com'
const documentedKey = 'ing_live_…'

type Sender = {
  readonly heading: string
  /** Names of the program, the usual one first. */
  readonly programs: readonly string[]
  readonly file: string
  arguments(path: string): readonly string[]
  /** Changes to the configuration beside its address and key, so that it runs here. */
  adapt?(text: string, place: { readonly node: IngestNode; readonly directory: string; readonly port: number }): string
  /** Makes the program send records with these texts, unless it makes some of its own. */
  feed?(texts: readonly string[], place: { readonly directory: string; readonly port: number }): Promise<void>
  /** Returns the text of a record. */
  textOf?(record: unknown): unknown
}

const writeLog = (texts: readonly string[], { directory }: { readonly directory: string }) =>
  writeFile(join(directory, 'in', 'app.log'), texts.map((text) => `${text}\n`).join(''))

const senders: readonly Sender[] = [
  {
    heading: 'Vector',
    programs: ['vector'],
    file: 'vector.yaml',
    arguments: (path) => ['--config', path],
    // A file that is there at the start counts as read otherwise.
    adapt: (text) => text.replace('type: file\n', 'type: file\n    read_from: beginning\n'),
    feed: writeLog,
    textOf: (record) => (record as { message?: unknown }).message,
  },
  {
    heading: 'Fluent Bit',
    programs: ['fluent-bit'],
    file: 'fluent-bit.yaml',
    arguments: (path) => ['-c', path],
    adapt: (text, { node }) =>
      text
        .replace(`host: ${documentedHost}`, 'host: 127.0.0.1')
        .replace('port: 443', `port: ${new URL(node.url).port}`)
        .replace('tls: on', 'tls: off')
        .replace('name: tail\n', 'name: tail\n      read_from_head: true\n'),
    feed: writeLog,
    textOf: (record) => (record as { log?: unknown }).log,
  },
  {
    heading: 'Telegraf',
    programs: ['telegraf'],
    file: 'telegraf.conf',
    arguments: (path) => ['--config', path],
    adapt: (text) => text.replaceAll('"10s"', '"1s"'),
  },
  {
    heading: 'OpenTelemetry',
    programs: ['otelcol', 'otelcol-contrib', 'otelcorecol'],
    file: 'otel.yaml',
    arguments: (path) => ['--config', path],
    adapt: (text, { port }) =>
      text
        .replace('127.0.0.1:4318', `127.0.0.1:${port}`)
        .replace('service:\n', 'service:\n  telemetry: { metrics: { level: none } }\n'),
    feed: async (texts, { port }) => {
      const logRecords = texts.map((text) => ({ body: { stringValue: text } }))
      const body = JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords }] }] })
      const headers = { 'content-type': 'application/json' }
      await until('the receiver of the Collector', async () => {
        const sent = await fetch(`http://127.0.0.1:${port}/v1/logs`, { method: 'POST', headers, body }).catch(() => undefined)
        return sent?.ok === true
      })
    },
    textOf: (record) => (record as { body?: unknown }).body,
  },
]

const documented = (text: string, node: IngestNode) =>
  text.replaceAll(`https://${documentedHost}`, node.url).replaceAll(documentedKey, secretOf('a'))

for (const sender of senders) {
  const { heading, programs, file } = sender
  const variable = `INLET_TEST_${programs[0]?.toUpperCase().replace('-', '_')}`
  const program = process.env[variable] ?? programs.find(isOnPath)
  const reason = `skipped: ${programs[0]} is not on the PATH, and ${variable} is not set`
  describe.skipIf(program === undefined)(program === undefined ? `${heading} (${reason})` : heading, () => {
    test('sends everything once, although it is refused at first', { timeout: 180_000 }, async () => {
      const endpoint = anEndpoint({ desired_state: 'paused' })
      await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }) })
      const directory = await mkdtemp(join(tmpdir(), 'inlet-sender-'))
      for (const name of ['in', 'data']) mkdirSync(join(directory, name))
      const place = { node, directory, port: await freePort() }
      const path = join(directory, file)
      const local = documented(configurationOf(heading), node)
        .replace('/var/log/app', join(directory, 'in'))
        .replaceAll(/\/var\/lib\/[^\s/]*/g, join(directory, 'data'))
      await writeFile(path, sender.adapt?.(local, place) ?? local)
      const texts = Array.from({ length: 200 }, (_, index) => `line ${index} of ${heading}`)
      if (sender.feed === writeLog) await sender.feed(texts, place)
      const child = spawn(program ?? '', [...sender.arguments(path)], { stdio: 'ignore' })
      try {
        if (sender.feed !== writeLog) await sender.feed?.(texts, place)
        await until('a refusal', async () => (await refusals(node)) > 0, 60_000)
        await node.publish(aSnapshot({ epoch: 2, endpoints: [{ ...endpoint, desired_state: 'active' }] }))
        const wanted = sender.feed === undefined ? 3 : texts.length
        // A paused endpoint says to try again in 30 s, and the Collector does as it is told.
        await until('all records', async () => (await node.metric('inlet_ingest_records_total')) >= wanted, 90_000)
      } finally {
        await end(child, 'SIGTERM')
        await rm(directory, { recursive: true, force: true })
      }
      const records = (await node.stored(endpoint.id))
        .flatMap(({ payload }) => payload.toString().split('\n'))
        .filter((line) => line.trim() !== '')
        .map((line) => JSON.parse(line) as unknown)
      const { textOf } = sender
      if (textOf !== undefined) expect(records.map((record) => textOf(record)).toSorted()).toEqual(texts.toSorted())
      else {
        const metric = { name: expect.stringMatching(/^(cpu|mem)$/), fields: expect.anything(), tags: expect.anything() }
        for (const record of records) expect(record).toMatchObject({ ...metric, timestamp: expect.stringMatching(/Z$/) })
      }
    })
  })
}

test('Logstash: a batch as its http output sends it', async () => {
  const code = configurationOf('Logstash')
  expect(code).toContain('format => "json_batch"')
  const endpoint = anEndpoint()
  await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }) })
  const events = Array.from({ length: 125 }, (_, n) => ({
    '@timestamp': '2026-11-23T08:15:30.123Z',
    '@version': '1',
    message: `line\n${n}`,
  }))
  const [, name = '', value = ''] = /headers => \{ "(.*?)" => "(.*?)" \}/.exec(documented(code, node)) ?? []
  const headers = { [name]: value, 'content-type': 'application/json', 'content-encoding': 'gzip' }
  const body = new Uint8Array(gzipSync(JSON.stringify(events)))
  const sent = await fetch(`${node.url}/v1/ingest`, { method: 'POST', headers, body })
  expect([sent.status, await sent.json()]).toEqual([202, expect.objectContaining({ accepted_records: 125 })])
})

describe('the console shows the same', () => {
  const target = { host: documentedHost, isSecure: true, endpointId: 'e1', key: documentedKey }
  const exampleOf = (id: string) => examplesFor(target).find((each) => each.id === id)?.code ?? ''

  test('for Vector', () => {
    expect(parse(configurationOf('Vector')).sinks.inlet).toMatchObject(parse(exampleOf('vector')).sinks.inlet)
  })

  test('for Fluent Bit', () => {
    expect(parse(configurationOf('Fluent Bit')).pipeline.outputs).toMatchObject(parse(exampleOf('fluent-bit')).pipeline.outputs)
  })
})

async function refusals(node: IngestNode): Promise<number> {
  const metrics = await (await fetch(`${node.url}/metrics`)).text()
  return Number(/^inlet_ingest_requests_total\{status="503".*\} (\d+)$/m.exec(metrics)?.[1] ?? 0)
}

function isOnPath(program: string): boolean {
  try {
    execFileSync('which', [program], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
