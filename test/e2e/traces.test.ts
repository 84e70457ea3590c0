/** Traces of requests and of the delivery of their records, as a receiver of OpenTelemetry gets them. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const parentSpanId = '00f067aa0ba902b7'

type Span = {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, string>> }[]
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly process: string
}

/** Stands for a collector. It keeps the text of each request. */
class Receiver {
  readonly bodies: string[] = []
  readonly #server: Server

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        expect([request.method, request.url, request.headers['x-tenant']]).toEqual(['POST', '/v1/traces', 'seven 7'])
        this.bodies.push(Buffer.concat(chunks).toString())
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      })
    })
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  stop(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  spans(): Span[] {
    return this.bodies.flatMap((body) => {
      const [{ resource, scopeSpans }] = JSON.parse(body).resourceSpans
      const process = resource.attributes.find(({ key }: { key: string }) => key === 'inlet.process').value.stringValue
      return scopeSpans[0].spans.map((span: object) => ({ ...span, process }))
    })
  }
}

describeWith('processes', 'traces', () => {
  const receiver = new Receiver()
  let installation: Installation
  let endpointId: string

  beforeAll(async () => {
    const environment = {
      OTEL_EXPORTER_OTLP_ENDPOINT: await receiver.start(),
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=seven%207',
      OTEL_TRACES_SAMPLER: 'parentbased_always_off',
    }
    installation = await Installation.create({ environment })
    await installation.start('start')
    endpointId = (await installation.endpoint({ bucket: 'traced' })).id
  }, 120_000)
  afterAll(async () => {
    await installation[Symbol.asyncDispose]()
    receiver.stop()
  }, 60_000)

  const send = (headers: Readonly<Record<string, string>>) =>
    fetch(`${installation.ingestUrl}/v1/ingest?endpoint=${endpointId}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${installation.apiKey}`, 'content-type': 'application/x-ndjson', ...headers },
      body: '{"secret":"of the record"}\n{"n":2}\n',
    })
  const attribute = (span: Span | undefined, name: string) =>
    Object.values(span?.attributes.find(({ key }) => key === name)?.value ?? {})[0]

  test('lead from a request whose sender asks for it to the commit of its records', async () => {
    expect((await send({})).status).toBe(202)
    const response = await send({ traceparent: `00-${traceId}-${parentSpanId}-01`, 'idempotency-key': 'one' })
    expect(response.status).toBe(202)
    const { segment_seq } = (await response.json()) as { segment_seq: number }
    await until('the span of the delivery', () => receiver.spans().some(({ name }) => name === 'deliver segment'), 60_000)
    const spans = receiver.spans()
    const named = (name: string) => spans.filter((span) => span.name === name)

    const [request, ...others] = named('ingest')
    expect(others).toEqual([])
    expect(request).toMatchObject({ traceId, parentSpanId, kind: 2, process: 'ingest' })
    expect(attribute(request, 'inlet.segment_seq')).toBe(String(segment_seq))
    expect(attribute(request, 'http.response.status_code')).toBe('202')
    const [append] = named('append')
    expect(append).toMatchObject({ traceId, parentSpanId: request?.spanId })
    const [fsync] = named('fsync')
    expect(fsync).toMatchObject({ traceId, parentSpanId: append?.spanId })
    expect(BigInt(fsync?.endTimeUnixNano ?? 0)).toBeLessThanOrEqual(BigInt(append?.endTimeUnixNano ?? 0) + 2_000_000n)

    const [delivery] = named('deliver segment')
    expect(delivery).toMatchObject({ process: 'delivery', links: [{ traceId, spanId: request?.spanId }] })
    for (const name of ['inlet.endpoint_id', 'inlet.node_id', 'inlet.segment_seq'])
      expect(attribute(delivery, name)).toBe(attribute(request, name))
    const stages = spans.filter((span) => span.parentSpanId === delivery?.spanId)
    expect(stages.map(({ name }) => name)).toEqual(['convert', 'upload', 'commit', 'record'])
    const times = stages.map(({ startTimeUnixNano, endTimeUnixNano }) => [BigInt(startTimeUnixNano), BigInt(endTimeUnixNano)])
    for (const [start = 0n, end = 0n] of times) expect(start <= end).toBe(true)
    const [commit] = (await installation.ok('GET', `/v1/endpoints/${endpointId}/commits`)).items
    expect(attribute(delivery, 'inlet.commit_id')).toBe(commit.id)

    // Neither what was sent nor with which key.
    const text = receiver.bodies.join('\n')
    expect(text).not.toContain('of the record')
    expect(text).not.toContain(installation.apiKey)
    expect(text).not.toContain('"one"')
  })
})
