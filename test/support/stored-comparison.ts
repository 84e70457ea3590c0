/** Raw Parquet as delivery writes it, and comparisons of definitions on it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll } from 'vitest'
import { GiB, MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import type { Column, Definition } from '#model/definition.ts'
import { newId } from '#model/id.ts'
import { comparisonLimits } from '#model/limits.ts'
import { standInOf } from '#model/secret.ts'
import { type CompareOptions, type CompareTask, compareStored } from '#preview/compare-stored.ts'
import type { StoredFile } from '#preview/stored-batches.ts'
import { RecordTable } from '#records/record-table.ts'

export const receivedAtMs = 1_795_161_600_123
export const endpoint_id = newId()

/** A directory for the tests of a file, and raw Parquet in it. */
export function useStoredFiles() {
  let directory = ''
  let files = 0
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'inlet-compare-'))
  })
  afterAll(() => rm(directory, { recursive: true }))
  return {
    pathOf: (name: string) => join(directory, name),
    async written(segmentSeq: number, payloads: readonly Buffer[]): Promise<StoredFile> {
      const path = join(directory, `${files++}.parquet`)
      await withTable(directory, segmentSeq, payloads, (table) => table.writeRaw(path))
      return { path, endpoint_id, commit_id: `commit-${segmentSeq}` }
    },
  }
}

/** Calls `use` with the records of a segment. */
export async function withTable<T>(
  directory: string,
  segmentSeq: number,
  payloads: readonly Buffer[],
  use: (table: RecordTable) => Promise<T>,
): Promise<T> {
  const signal = new AbortController().signal
  const bounds = { memoryBytes: 256 * MiB, spillBytesMax: GiB, viewTimeoutMs: 60_000 }
  const table = await RecordTable.open({ clock: systemClock, directory, segmentSeq, signal, ...bounds })
  const source = { protocol: 'mqtt', topic: 'a/b', clientId: 'c', attributes: '', receivedAtMicros: receivedAtMs * 1_000 }
  try {
    for (const payload of payloads) table.addFrame(source, payload).add(0, payload.length)
    table.flush()
    table.finish()
    return await use(table)
  } finally {
    table.close()
  }
}

export function compare(
  before: Definition,
  after: Definition,
  stored: readonly StoredFile[],
  bounds: Partial<CompareOptions> = {},
) {
  const task: CompareTask = {
    ...{
      view_name: 'orders',
      since: '2026-11-20T08:15:30.123Z',
      records_stored: 10,
      bounded_by: [],
      unread_files: [],
      files: stored,
    },
    endpoints: [{ endpoint_id, endpoint_name: 'shop', records_stored: 10 }],
    before: { view_id: newId(), version: 1, definition: before },
    after: { view_id: null, version: null, definition: after },
    secrets: { key: standInOf('key') },
  }
  const { recordsMax, rowsMax } = comparisonLimits
  return compareStored(task, { clock: systemClock, timeoutMs: 60_000, readingMs: 60_000, recordsMax, rowsMax, ...bounds })
}

export const column = (name: string, type: string, more: Partial<Column> = {}): Column => ({
  ...{ name, type },
  ...(more.value === undefined ? { path: `$.${name}` } : {}),
  ...more,
})
export const textOf = (values: readonly unknown[]) => values.map((value) => Buffer.from(JSON.stringify(value)))

export const aValue = fc.constantFrom<unknown>(
  1,
  2,
  '1',
  '2.50',
  'X',
  'y',
  true,
  null,
  '2026-11-20T08:15Z',
  [1, 'x'],
  { z: 1 },
  1e300,
)
