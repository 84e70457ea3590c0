/** Commits as nodes report them: raw Parquet, and Parquet of one view with its column quality. Every tenth has a dead letter file. */
import { type ArtifactFiles, commitId, type SegmentCommit } from '../../src/model/commit.ts'
import { columnNames, type FilledEndpoint } from './fill.ts'
import type { SimulatedNode } from './fleet.ts'

const log = 'simulation'
const records = 250_000
const sha256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'

/** Returns the body of one call. Each call has commits of its own, of the endpoints of the node in turn. */
export function commitBody(node: SimulatedNode, call: number, count: number): string {
  const commits = Array.from({ length: count }, (_, index) => {
    const seq = nextSeq()
    const endpoint = node.endpoints[(call * 7919 + index) % node.endpoints.length]
    if (endpoint === undefined) throw new Error(`region ${node.region} has no endpoints`)
    return aCommit(node, endpoint, seq)
  })
  return JSON.stringify({ commits })
}

let lastSeq = 0
const nextSeq = () => ++lastSeq

function aCommit(node: SimulatedNode, endpoint: FilledEndpoint, seq: number): SegmentCommit {
  const at = new Date().toISOString()
  const isBad = seq % 10 === 0
  const counts = { processed: records, accepted: records - (isBad ? 12 : 0), dropped: 0, dlq: isBad ? 12 : 0, failed: 0 }
  return {
    ...{ id: commitId(node.id, log, seq), endpoint_id: endpoint.id, node_id: node.id, log, seq, records, records_damaged: 0 },
    ...{ wal_bytes: 67_108_864, sealed_at: at, uploaded_at: at, duration_ms: 480 },
    destination: { id: endpoint.destination, bucket: 'lake-of-the-account', region: 'eu-central-1' },
    artifacts: artifactsOf(node, endpoint, seq, isBad),
    views: [
      {
        ...{ view_id: endpoint.view, view_name: 'events', view_version: 1, ...counts, cast_nulls: 3 },
        errors: isBad ? { missing_required: 12 } : {},
        last_error: isBad ? { code: 'missing_required', message: 'column_1 is missing', at } : null,
        quality: {
          columns: columnNames.map((name) => ({
            ...{ name, type: 'VARCHAR', values: records - seq, nulls: seq, cast_nulls: 0, cast_dlq: 0, missing: 0 },
            ...{ min: `a value of ${name}`, max: `z value of ${name} ${seq}` },
          })),
          sampled_records: 200,
          unmapped: [{ path: '$.unmapped', types: ['string'], records: 17 }],
        },
      },
    ],
  }
}

function artifactsOf(node: SimulatedNode, { id, view }: FilledEndpoint, seq: number, isBad: boolean): ArtifactFiles {
  const name = `${node.id}-${log}-${String(seq).padStart(12, '0')}`
  const file = (folder: string, suffix: string) => ({
    ...{ key: `raw/events/${id}/${folder}/dt=2026-11-22/${name}${suffix}`, bytes: 12_345_678, rows: records, sha256 },
  })
  const ofView = { view_id: view, view_version: 1 }
  return {
    parquet: file('parquet', '.parquet'),
    'views/events/v1': { ...file('views/events/v1', '.parquet'), ...ofView },
    ...(isBad ? { 'dlq/events/v1': { ...file('dlq/events/v1', '.ndjson.gz'), ...ofView } } : {}),
    manifest: file('commits', '.json'),
  }
}
