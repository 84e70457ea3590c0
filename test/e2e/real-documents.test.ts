/** Real GitHub events and nginx status documents: in over HTTP, out as Parquet, every value compared. */
import { readFileSync } from 'node:fs'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { describeWith, type TestEndpoint, useDeployment } from '../support/deployment.ts'
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
  /** The row that the view must make of a document, or its other outcome. */
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
          { name: 'hg_sent', type: 'UBIGINT', path: "$.server_zones['hg.nginx.org'].sent", parquet: 'native' },
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

for (const { file, linesPerRequest, view, expected } of cases) {
  describeWith('objects', file, () => testDocuments({ file, linesPerRequest, view, expected }))
}

function testDocuments({ file, linesPerRequest, view, expected }: Case): void {
  const lines = realLines(file)
  if (lines === undefined) {
    test.skip('(skipped: the file is missing, set INLET_TEST_DATA to its folder)', () => undefined)
    return
  }
  const deployment = useDeployment()
  let endpoint: TestEndpoint

  beforeAll(async () => {
    endpoint = await deployment().endpoint({ bucket: view.name, view })
    const seqs = new Set<number>()
    for (let at = 0; at < lines.length; at += linesPerRequest) {
      const batch = lines.slice(at, at + linesPerRequest)
      const { status, body } = await deployment().ingest(endpoint.id, `${batch.join('\n')}\n`)
      expect(status, JSON.stringify(body)).toBe(202)
      expect(body.accepted_records).toBe(batch.length)
      seqs.add(body.segment_seq)
    }
    await deployment().committed(endpoint.id, seqs)
  }, 120_000)

  const outcomes = lines.map((line) => expected(JSON.parse(line)))
  const rows = outcomes.filter((outcome) => typeof outcome === 'object')

  test('raw Parquet has every line, in order, for both readers', async () => {
    const paths = await deployment().artifacts(endpoint.id, 'parquet')
    for (const read of [readWithDuckDb, readWithHyparquet]) {
      const raw = await read(paths)
      expect(raw.map(({ payload }) => payload)).toEqual(lines)
      expect(raw.map(({ protocol, payload_bytes }) => [protocol, payload_bytes])).toEqual(lines.map(() => ['http', null]))
    }
    const raw = await readWithDuckDb(paths)
    const markers = await deployment().markers(endpoint.id)
    const positions = markers.flatMap(({ seq, records }) => Array.from({ length: records }, (_, index) => [seq, index]))
    expect(raw.map(({ segment_seq, record_index }) => [Number(segment_seq), Number(record_index)])).toEqual(positions)
  })

  test('the view has every value, for both readers', async () => {
    const paths = await deployment().artifacts(endpoint.id, `views/${endpoint.viewName}/v1`)
    expect(await readWithDuckDb(paths)).toEqual(rows)
    expect(await readWithHyparquet(paths)).toEqual(rows)
  })

  test('the counters add up', async () => {
    const counted = (await deployment().markers(endpoint.id)).flatMap(({ views }) => views)
    const sum = (of: 'processed' | 'accepted' | 'dropped' | 'dlq') => counted.reduce((total, outcome) => total + outcome[of], 0)
    expect([sum('processed'), sum('accepted'), sum('dropped'), sum('dlq')]).toEqual([
      lines.length,
      rows.length,
      outcomes.filter((outcome) => outcome === 'dropped').length,
      outcomes.filter((outcome) => outcome === 'dlq').length,
    ])
  })

  test('the DLQ has the rejected records as they were sent', async () => {
    const paths = await deployment().artifacts(endpoint.id, `dlq/${endpoint.viewName}/v1`)
    const dead = paths
      .flatMap((path) => gunzipSync(readFileSync(path)).toString().trimEnd().split('\n'))
      .map((line) => JSON.parse(line).record)
    expect(dead).toEqual(lines.filter((_, index) => outcomes[index] === 'dlq'))
  })

  test('the segment artifact contains every line', async () => {
    const log = Buffer.concat(
      (await deployment().artifacts(endpoint.id, 'segment')).map((path) => zstdDecompressSync(readFileSync(path))),
    )
    for (const line of lines) expect(log.includes(line)).toBe(true)
  })
}
