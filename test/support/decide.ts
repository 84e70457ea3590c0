import { Buffer } from 'node:buffer'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect } from 'vitest'
import type { Value } from '#duckdb/database.ts'
import { GiB, MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import type { Definition } from '#model/definition.ts'
import { groupProperties } from '#model/record-envelope.ts'
import { standInOf } from '#model/secret.ts'
import type { ViewQuality } from '#model/view-quality.ts'
import type { DecidedView, RowCounts } from '#records/extracted-views.ts'
import { readKeys } from '#records/read-keys.ts'
import { RecordTable } from '#records/record-table.ts'
import { compileView } from '#views/compile.ts'
import { queryRows } from './parquet.ts'

export type Decided = {
  readonly counts: RowCounts
  readonly quality: ViewQuality
  readonly rows: readonly (readonly Value[])[]
  readonly types: readonly string[]
  readonly dlq: readonly { readonly [field: string]: unknown }[]
}

const decidedAt = 1_700_000_000_000_000
/** Attributes of every third record. */
const decidedAttributes = JSON.stringify({
  content_type: 'text/plain',
  address: '2001:db8:1::',
  key_name: 'plant "7"',
  user_properties: groupProperties([
    ['site', 'north'],
    ['a b', '1'],
    ['a b', '2'],
    ['0', 'digit'],
    ['__proto__', 'p'],
  ]),
  headers: { 'x-hub-signature-256': 'sha256=ab', '3-d': 'digit' },
})

/** Runs a view over records, each in its own frame, alone or beside other views. `look` may read the Parquet. */
export async function decide(
  definition: Definition,
  records: readonly (string | Buffer)[],
  beside: readonly Definition[] = [],
  look: (parquet: string) => Promise<unknown> = async () => undefined,
  memoryBytes = 256 * MiB,
): Promise<Decided> {
  return withTable(records, memoryBytes, async (table, directory) => {
    const extracted = await table.extract(await compileAll([...beside, definition]))
    for (const view of beside.keys()) await table.writeAccepted(extracted, view, join(directory, 'other.parquet'))
    const decided = await table.writeAccepted(extracted, beside.length, join(directory, 'rows.parquet'))
    const { counts, quality } = decided
    expect(counts.processed).toBe(counts.accepted + counts.dropped + counts.dlq)
    const dlq = await readDlq(table, decided, directory)
    const { rows, types } = await queryRows(`SELECT * FROM '${directory}/rows.parquet'`)
    if (rows.length > 0) await look(join(directory, 'rows.parquet'))
    expect(rows).toHaveLength(counts.rows)
    if (definition.expand === undefined) expect(counts.rows).toBe(counts.accepted)
    expect(dlq).toHaveLength(counts.dlq)
    return { counts, quality, rows, types, dlq }
  })
}

export type DecidedFile = {
  readonly partition: { readonly [column: string]: string | null }
  readonly rows: readonly (readonly Value[])[]
}

export type DecidedFiles = Omit<Decided, 'rows' | 'types'> & {
  readonly files: readonly DecidedFile[]
  readonly names: readonly string[]
  /** Keys that the records wrote, in hexadecimal, and those that are read from the files. */
  readonly keys: readonly string[]
  readonly inFiles: readonly string[]
}

async function keysIn(definition: Definition, { files }: DecidedView, directory: string, memoryBytes: number) {
  if (files.length === 0) return []
  const commits = [{ id: 'all', files: files.map(({ path }) => ({ path })) }]
  const options = { definition, commits, directory, memoryBytes, signal: new AbortController().signal }
  const [read] = await readKeys(options)
  return read === undefined ? [] : readKeysFile(read.path)
}

/** Returns a byte for each key. */
export function findKeys(keys: Uint8Array, isKnown: (key: string) => boolean): Uint8Array {
  return Uint8Array.from(Buffer.from(keys).toString('hex').match(/.{32}/g) ?? [], (key) => Number(isKnown(key)))
}

async function readKeysFile(path: string): Promise<readonly string[]> {
  return (await readFile(path, 'hex')).match(/.{32}/g) ?? []
}

/** Runs a view with a layout over records. Returns its files, and the names of all files that it left. */
export async function decideFiles(
  definition: Definition,
  records: readonly string[],
  {
    partitionsMax,
    memoryBytes = 256 * MiB,
    known,
  }: {
    readonly partitionsMax?: number
    readonly memoryBytes?: number
    /** Keys of earlier segments, in hexadecimal. */
    readonly known?: ReadonlySet<string>
  } = {},
): Promise<DecidedFiles> {
  return withTable(records, memoryBytes, async (table, directory) => {
    const extracted = await table.extract(await compileAll([definition]))
    const filter = known && {
      path: join(directory, 'keys'),
      find: async (keys: Uint8Array) => findKeys(keys, (key) => known.has(key)),
    }
    const decided = await table.writeAccepted(extracted, 0, join(directory, 'rows.parquet'), partitionsMax, filter)
    const keys = known === undefined ? [] : await readKeysFile(join(directory, 'keys'))
    const inFiles = known === undefined ? [] : await keysIn(definition, decided, directory, memoryBytes)
    const names = (await readdir(directory)).filter((name) => name.startsWith('rows.'))
    const files: DecidedFile[] = []
    for (const { path, rows, partition = [] } of decided.files) {
      const read = await queryRows(`SELECT * FROM read_parquet('${path}', hive_partitioning = false)`)
      expect(read.rows).toHaveLength(rows)
      files.push({ partition: Object.fromEntries(partition.map(({ column, value }) => [column, value])), rows: read.rows })
    }
    const { counts, quality } = decided
    expect(counts.processed).toBe(counts.accepted + counts.dropped + counts.dlq)
    const dlq = await readDlq(table, decided, directory)
    expect(dlq).toHaveLength(counts.dlq)
    return { counts, quality, files, names, dlq, keys, inFiles }
  })
}

async function readDlq(table: RecordTable, decided: DecidedView, directory: string): Promise<Decided['dlq']> {
  const path = join(directory, 'dlq.ndjson.gz')
  await table.writeDlq(decided, path)
  const lines = gunzipSync(await readFile(path))
    .toString()
    .split('\n')
    .slice(0, -1)
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** Runs many views over the same records, and returns how each decided. Far cheaper than `decide` for each. */
export async function countEach(definitions: readonly Definition[], records: readonly string[]): Promise<readonly RowCounts[]> {
  return withTable(records, 256 * MiB, async (table, directory) => {
    const counts: RowCounts[] = []
    // One at a time, as few views share a segment: the statement of a hundred would be a test of its own.
    for (const view of await compileAll(definitions)) {
      const extracted = await table.extract([view])
      counts.push((await table.writeAccepted(extracted, 0, join(directory, 'rows.parquet'))).counts)
    }
    return counts
  })
}

/** Runs many views over the same records, and returns how many milliseconds each took. */
export async function timeEach(definitions: readonly Definition[], records: readonly string[]): Promise<readonly number[]> {
  return withTable(records, 256 * MiB, async (table, directory) => {
    const times: number[] = []
    for (const view of await compileAll(definitions)) {
      const start = performance.now()
      await table.writeAccepted(await table.extract([view]), 0, join(directory, 'rows.parquet'))
      times.push(performance.now() - start)
    }
    return times
  })
}

/** Secrets have the values that stand for them in tests. */
async function compileAll(definitions: readonly Definition[]) {
  return Promise.all(
    definitions.map(async (each) => {
      const compiled = await compileView(each)
      const secrets = Object.fromEntries(compiled.secrets.map((name) => [name, standInOf(name)]))
      return { name: 'seen', version: 3, compiled, secrets }
    }),
  )
}

async function withTable<T>(
  records: readonly (string | Buffer)[],
  memoryBytes: number,
  work: (table: RecordTable, directory: string) => Promise<T>,
): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-views-'))
  const table = await RecordTable.open({
    clock: systemClock,
    directory,
    memoryBytes,
    segmentSeq: 7,
    signal: new AbortController().signal,
    spillBytesMax: GiB,
    viewTimeoutMs: 600_000,
  })
  try {
    for (const [index, record] of records.entries()) {
      const payload = Buffer.from(record)
      const from = {
        protocol: 'mqtt',
        topic: `t/${index % 3}`,
        clientId: '',
        attributes: index % 3 === 0 ? decidedAttributes : '',
        receivedAtMicros: decidedAt + index,
      }
      table.addFrame(from, payload).add(0, payload.length)
    }
    table.finish()
    return await work(table, directory)
  } finally {
    table.close()
    await rm(directory, { recursive: true })
  }
}
