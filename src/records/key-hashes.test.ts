import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { decideFiles, findKeys } from '../../test/support/decide.ts'
import { separateKeys } from './key-hashes.ts'

const types = [
  'VARCHAR',
  'BOOLEAN',
  'TINYINT',
  'BIGINT',
  'UBIGINT',
  'HUGEINT',
  'DECIMAL(12,2)',
  'DATE',
  'TIME',
  'TIMESTAMP',
  'TIMESTAMPTZ',
  'UUID',
]

test('keys of files are those of the rows that were written, whatever the type', async () => {
  const values = [
    'a',
    'true',
    1,
    '18446744073709551615',
    7,
    '1.10',
    '2026-11-20',
    '08:15:00',
    '2026-11-20T08:15:00.000001Z',
    '2026-11-20T09:15:00+01:00',
    'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',
    'ü',
    '1.1',
  ]
  for (const type of types) {
    const definition = {
      columns: [
        { name: 'v', type, path: '$.v' },
        { name: 'n', type: 'BIGINT', path: '$.n' },
      ],
      dedupe_by: ['v'],
      dedupe_within: '1h',
    }
    const records = values.map((v, n) => JSON.stringify({ v, n }))
    const first = await decideFiles(definition, records, { known: new Set() })
    const { nulls } = must(first.quality.columns[0], 'a column')
    expect(first.keys.length, type).toBe(first.counts.rows - nulls)
    expect(first.keys.length, type).toBeGreaterThan(0)
    expect(first.inFiles, type).toEqual(first.keys)
    const again = await decideFiles(definition, records, { known: new Set(first.keys) })
    expect(again.counts, type).toMatchObject({ rows: nulls, duplicates: values.length - nulls })
    expect(again.keys, type).toEqual([])
  }
}, 60_000)

test('a file of hashes is divided into keys and known hashes, in order', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-hashes-'))
  try {
    const hashes = Array.from({ length: 10_000 }, (_, at) => (at * 7).toString(16).padStart(32, '0'))
    const [file, path, known] = ['hashes', 'keys', 'known'].map((name) => join(directory, name)) as [string, string, string]
    await writeFile(file, hashes.map((hash) => `${hash}\n`).join(''))
    const isKnown = (hash: string) => Number.parseInt(hash.slice(-6), 16) % 3 === 0
    const counts = await separateKeys(file, { path, find: async (keys) => findKeys(keys, isKnown) }, known)
    expect(await readFile(path, 'hex')).toBe(hashes.filter((hash) => !isKnown(hash)).join(''))
    expect((await readFile(known, 'utf8')).split('\n').slice(0, -1)).toEqual(hashes.filter(isKnown))
    expect(counts).toEqual({ fresh: 6_666, known: 3_334 })
  } finally {
    await rm(directory, { recursive: true })
  }
})
