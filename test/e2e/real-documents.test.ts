/** Real GitHub events and nginx status documents: in over HTTP, out as Parquet, every value compared. */
import { readFileSync } from 'node:fs'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { type Row, readWithDuckDb, readWithHyparquet } from '../support/parquet.ts'
import { realLines } from '../support/real-documents.ts'

// biome-ignore lint/suspicious/noExplicitAny: documents of every shape
type Document = any

type Case = {
  readonly file: 'github-events.ndjson' | 'nginx-plus-status.ndjson'
  readonly linesPerRequest: number
  readonly view: {
    readonly name: string
    readonly definition: { readonly columns: readonly object[]; readonly filters?: readonly object[] }
  }
  /** What the view must make of a document. */
  readonly expected: (document: Document) => Row | 'dropped' | 'dlq'
}

const text = (value: unknown) => (value === undefined || value === null ? null : String(value))
const moment = (iso: string) => new Date(iso).toISOString()

const cases: readonly Case[] = [
  {
    file: 'github-events.ndjson',
    linesPerRequest: 7,
    view: {
      name: 'github',
      definition: {
        columns: [
          { name: 'created_at', type: 'TIMESTAMP', path: '$.created_at', required: true },
          { name: 'id', type: 'BIGINT', path: '$.id', required: true },
          { name: 'type', type: 'VARCHAR', path: '$.type', required: true },
          { name: 'public', type: 'BOOLEAN', path: '$.public' },
          { name: 'actor_id', type: 'INTEGER', path: '$.actor.id' },
          { name: 'repo', type: 'VARCHAR', path: '$.repo.name' },
          { name: 'size', type: 'INTEGER', path: '$.payload.size' },
          { name: 'shas', type: 'VARCHAR[]', path: '$.payload.commits[*].sha' },
          { name: 'message', type: 'VARCHAR', path: '$.payload.commits[0].message' },
          { name: 'description', type: 'VARCHAR', path: '$.payload.description' },
          { name: 'org_picture', type: 'UUID', path: '$.org.gravatar_id', cast_failures: 'dlq' },
        ],
        filters: [{ condition: "type != 'WatchEvent'" }],
      },
    },
    expected(event) {
      if (event.type === 'WatchEvent') return 'dropped'
      if (event.org?.gravatar_id === '') return 'dlq'
      const uuid = event.org?.gravatar_id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
      return {
        created_at: moment(event.created_at),
        id: text(event.id),
        type: event.type,
        public: event.public,
        actor_id: text(event.actor.id),
        repo: event.repo.name,
        size: text(event.payload.size),
        shas: event.payload.commits?.map(({ sha }: { sha: string }) => sha) ?? null,
        message: event.payload.commits?.[0]?.message ?? null,
        description: event.payload.description ?? null,
        org_picture: uuid ?? null,
      }
    },
  },
  {
    file: 'nginx-plus-status.ndjson',
    linesPerRequest: 60,
    view: {
      name: 'nginx',
      definition: {
        columns: [
          { name: 'at_ms', type: 'BIGINT', path: '$.timestamp', required: true },
          { name: 'nginx_version', type: 'VARCHAR', path: '$.nginx_version' },
          { name: 'accepted', type: 'UINTEGER', path: '$.connections.accepted' },
          { name: 'hg_sent', type: 'UBIGINT', path: "$.server_zones['hg.nginx.org'].sent" },
          { name: 'hg_2xx', type: 'DOUBLE', path: '$.server_zones."hg.nginx.org".responses."2xx"' },
          { name: 'peers', type: 'VARCHAR[]', path: "$.upstreams['trac-backend'].peers[*].server" },
          { name: 'first_up', type: 'BOOLEAN', path: "$.upstreams['trac-backend'].peers[0].health_checks.last_passed" },
          { name: 'selected', type: 'BIGINT', path: "$.upstreams['trac-backend'].peers[0].selected" },
          { name: 'protocol', type: 'VARCHAR', path: '$$.protocol' },
        ],
        filters: [{ condition: 'accepted % 3 != 0' }],
      },
    },
    expected(status) {
      if (status.connections.accepted % 3 === 0) return 'dropped'
      const zone = status.server_zones['hg.nginx.org']
      const { peers } = status.upstreams['trac-backend']
      return {
        at_ms: text(status.timestamp),
        nginx_version: status.nginx_version,
        accepted: text(status.connections.accepted),
        hg_sent: text(zone.sent),
        hg_2xx: text(zone.responses['2xx']),
        peers: peers.map(({ server }: { server: string }) => server),
        first_up: peers[0].health_checks.last_passed,
        selected: text(peers[0].selected),
        protocol: 'http',
      }
    },
  },
]

describe.each(cases)('$file', ({ file, linesPerRequest, view, expected }) => {
  const lines = realLines(file)
  if (lines === undefined) {
    test.skip('is not on this machine: set INLET_TEST_DATA to the folder that has it', () => undefined)
    return
  }
  const bucket = view.name
  let installation: Installation
  let endpointId = ''

  beforeAll(async () => {
    installation = await Installation.create()
    await installation.start('start')
    endpointId = (await installation.endpoint({ bucket, view })).id
    const seqs = new Set<number>()
    for (let at = 0; at < lines.length; at += linesPerRequest) {
      const batch = lines.slice(at, at + linesPerRequest)
      const { status, body } = await installation.ingest(endpointId, `${batch.join('\n')}\n`)
      expect(status, JSON.stringify(body)).toBe(202)
      expect(body.accepted_records).toBe(batch.length)
      seqs.add(body.segment_seq)
    }
    await installation.committed(endpointId, seqs)
  }, 120_000)
  afterAll(() => installation[Symbol.asyncDispose]())

  const outcomes = lines.map((line) => expected(JSON.parse(line)))
  const rows = outcomes.filter((outcome) => typeof outcome === 'object')

  test('raw Parquet has every line, in order, for both readers', async () => {
    const paths = installation.artifacts(bucket, endpointId, 'parquet')
    for (const read of [readWithDuckDb, readWithHyparquet]) {
      const raw = await read(paths)
      expect(raw.map(({ payload }) => payload)).toEqual(lines)
      expect(raw.map(({ protocol, payload_bytes }) => [protocol, payload_bytes])).toEqual(lines.map(() => ['http', null]))
    }
    const raw = await readWithDuckDb(paths)
    const positions = installation
      .markers(bucket, endpointId)
      .flatMap(({ seq, records }) => Array.from({ length: records }, (_, index) => [seq, index]))
    expect(raw.map(({ segment_seq, record_index }) => [Number(segment_seq), Number(record_index)])).toEqual(positions)
  })

  test('the view has every value, for both readers', async () => {
    const paths = installation.artifacts(bucket, endpointId, `views/${view.name}/v1`)
    expect(await readWithDuckDb(paths)).toEqual(rows)
    expect(await readWithHyparquet(paths)).toEqual(rows)
  })

  test('what was not accepted is accounted for', () => {
    const counted = installation.markers(bucket, endpointId).flatMap(({ views }) => views)
    const sum = (of: 'processed' | 'accepted' | 'dropped' | 'dlq') => counted.reduce((total, outcome) => total + outcome[of], 0)
    expect([sum('processed'), sum('accepted'), sum('dropped'), sum('dlq')]).toEqual([
      lines.length,
      rows.length,
      outcomes.filter((outcome) => outcome === 'dropped').length,
      outcomes.filter((outcome) => outcome === 'dlq').length,
    ])
  })

  test('the DLQ has the records that it names, as they were sent', () => {
    const dead = installation
      .artifacts(bucket, endpointId, `dlq/${view.name}/v1`)
      .flatMap((path) => gunzipSync(readFileSync(path)).toString().trimEnd().split('\n'))
      .map((line) => JSON.parse(line).record)
    expect(dead).toEqual(lines.filter((_, index) => outcomes[index] === 'dlq'))
  })

  test('the segment artifact is the log: every line stands in it', () => {
    const log = Buffer.concat(
      installation.artifacts(bucket, endpointId, 'segment').map((path) => zstdDecompressSync(readFileSync(path))),
    )
    for (const line of lines) expect(log.includes(line)).toBe(true)
  })
})
