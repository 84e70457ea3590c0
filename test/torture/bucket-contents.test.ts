import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { aCommit } from '../support/commits.ts'
import { queryRows } from '../support/parquet.ts'
import { BucketContents } from './bucket-contents.ts'
import { requestsAt } from './faults/flip.ts'
import { judge } from './law.ts'
import { Ledger, recordText } from './ledger.ts'

const endpointId = aCommit({ seq: 0 }).endpoint_id
const folder = `in/let/${endpointId}`
let buckets: string

beforeEach(() => {
  buckets = mkdtempSync(join(tmpdir(), 'inlet-buckets-'))
})

afterEach(() => rmSync(buckets, { recursive: true, force: true }))

/** Puts a segment with raw Parquet of request 0, which has two records, and its marker. */
async function putSegment(seq: number): Promise<string> {
  const key = `${folder}/parquet/${seq}.parquet`
  const path = join(buckets, 'lake', key)
  mkdirSync(dirname(path), { recursive: true })
  const rows = [0, 1].map((index) => `('${recordText(0, index, '')}')`).join()
  await queryRows(`COPY (SELECT * FROM (VALUES ${rows}) AS rows(payload)) TO '${path}'`)
  const dlqKey = `${folder}/dlq/${seq}.ndjson.gz`
  const dlq = gzipSync(
    `${JSON.stringify({ record: recordText(0, 0, '') })}\n${JSON.stringify({ record: recordText(0, 1, '') })}\n`,
  )
  mkdirSync(join(buckets, 'lake', dirname(dlqKey)), { recursive: true })
  writeFileSync(join(buckets, 'lake', dlqKey), dlq)
  const destination = { id: endpointId, bucket: 'lake', region: 'local' }
  const counts = { processed: 2, accepted: 0, dropped: 0, dlq: 2, failed: 0, cast_nulls: 0, errors: {}, last_error: null }
  const artifacts = {
    parquet: { key, bytes: sizeOf(path), rows: 2, sha256: '' },
    'dlq/records/v1': { key: dlqKey, bytes: dlq.length, rows: 2, sha256: '' },
  }
  const views = [{ view_id: endpointId, view_name: 'records', view_version: 1, ...counts }]
  const marker = join(buckets, 'lake', folder, 'commits', `${seq}.json`)
  mkdirSync(dirname(marker), { recursive: true })
  writeFileSync(marker, JSON.stringify(aCommit({ seq, records: 2, destination, artifacts, views })))
  return path
}

async function lawsBroken(): Promise<readonly string[]> {
  await using contents = await BucketContents.open(buckets)
  const delivered = await contents.of(endpointId)
  const ledger = new Ledger()
  ledger.create(endpointId, 2).attempts.push('acknowledged')
  const healthy = {
    commits: undefined,
    counters: undefined,
    status: 'active',
    statusReasons: [],
    isDeleted: false,
    hasDirectory: true,
  }
  const endpoints = [{ id: endpointId, delivered, ...healthy }]
  const observed = { sent: ledger.sent, damaged: new Map(), endpoints, leftovers: [], troubles: [] }
  return judge(observed).findings.map(({ law }) => law)
}

test('a whole bucket breaks no law', async () => {
  await putSegment(0)
  expect(await lawsBroken()).toEqual([])
})

test('a file that was removed, one that was cut, and a marker that was removed are found', async () => {
  const path = await putSegment(0)
  copyFileSync(path, `${path}.kept`)
  rmSync(path)
  expect(await lawsBroken()).toContain('endpoint')
  writeFileSync(path, 'cut')
  expect(await lawsBroken()).toContain('endpoint')
  writeFileSync(path, Buffer.alloc(sizeOf(`${path}.kept`)))
  expect(await lawsBroken()).toContain('endpoint')
  copyFileSync(`${path}.kept`, path)
  for (const name of readdirSync(join(buckets, 'lake', folder, 'commits'))) rmSync(join(buckets, 'lake', folder, 'commits', name))
  expect(await lawsBroken()).toEqual(['lost'])
})

test('a segment that was committed twice is found', async () => {
  await putSegment(0)
  await putSegment(1)
  expect(await lawsBroken()).toEqual(['doubled'])
})

test('a flipped bit may cost only the requests around it', () => {
  const bytes = Buffer.from(
    `head ${recordText(4, 0, '')}\n${recordText(4, 1, '')}\n frame ${recordText(5, 0, '')}\n frame ${recordText(6, 0, '')} foot`,
  )
  const at = (id: number, index: number) => bytes.indexOf(`{"q":${id},"n":${index}`)
  expect(requestsAt(bytes, 0)).toEqual([4])
  expect(requestsAt(bytes, at(4, 0) + 3)).toEqual([4])
  expect(requestsAt(bytes, at(4, 1) + 3)).toEqual([4, 5])
  expect(requestsAt(bytes, at(6, 0))).toEqual([6])
  expect(requestsAt(bytes, bytes.length - 1)).toEqual([6])
})

function sizeOf(path: string): number {
  return statSync(path).size
}
