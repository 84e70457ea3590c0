import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type ArtifactKind,
  compactedKey,
  contentTypeOf,
  isCompactedKey,
  isMarker,
  markerFolder,
  objectKey,
  parseArtifactKind,
  parseMarkerKey,
  prefixOf,
  printArtifactKind,
} from './artifact.ts'
import { commitId } from './commit.ts'
import { newId } from './id.ts'
import { objectKeyLimits } from './limits.ts'

const segment = {
  endpointId: newId(),
  nodeId: newId(),
  incarnation: 'l_1-a',
  seq: 7,
  sealedAtMicros: Date.UTC(2026, 10, 20, 23, 59, 59, 999) * 1000 + 999,
}
const id = commitId(segment.nodeId, segment.incarnation, segment.seq)
const folder = `p/${segment.endpointId}`

// Names that look like other parts of a kind or a key.
const names = fc.oneof(fc.stringMatching(/^[a-z][a-z0-9_]{0,9}$/), fc.constantFrom('v1', 'redrive', 'manifest', 'views', 'dlq'))
const version = fc.integer({ min: 1, max: 999_999_999_999_999 })
const kinds: fc.Arbitrary<ArtifactKind> = fc.oneof(
  fc.constantFrom<ArtifactKind>({ type: 'segment' }, { type: 'parquet' }, { type: 'marker' }),
  fc.record({ type: fc.constantFrom('view', 'dlq', 'addition-marker'), name: names, version }),
  fc.record({ type: fc.constantFrom('view', 'dlq'), name: names, version, redriveFrom: version }),
)

test('the longest key below the longest prefix is one that S3 allows', () => {
  const longest = { ...segment, log: 'x'.repeat(10), seq: Number.MAX_SAFE_INTEGER }
  const view = { name: 'v'.repeat(64), version: 2_147_483_647, redriveFrom: 2_147_483_647 }
  const prefix = 'p'.repeat(objectKeyLimits.prefixBytesMax)
  const compacted = { id: `compact-${newId()}`, sha256: 'a'.repeat(64) }
  const place = { prefix, endpointId: segment.endpointId, date: '2026-11-20' }
  for (const type of ['view', 'dlq', 'addition-marker'] as const) {
    expect(objectKey(prefix, longest, { type, ...view }).length).toBeLessThanOrEqual(objectKeyLimits.keyBytesMax)
    expect(compactedKey(place, { type, ...view }, compacted).length).toBeLessThanOrEqual(objectKeyLimits.keyBytesMax)
  }
})

describe('the kind of an artifact', () => {
  test('files of an adoption have keys of their own, and its marker has that of the segment', () => {
    const adopted = { ...segment, adoption: '0a1b2c3d' }
    expect(objectKey('p', adopted, { type: 'parquet' })).toBe(
      objectKey('p', segment, { type: 'parquet' }).replace(/\.parquet$/, '-0a1b2c3d.parquet'),
    )
    expect(objectKey('p', adopted, { type: 'marker' })).toBe(objectKey('p', segment, { type: 'marker' }))
  })

  test.each<[string, ArtifactKind]>([
    ['segment', { type: 'segment' }],
    ['parquet', { type: 'parquet' }],
    ['views/orders/v2', { type: 'view', name: 'orders', version: 2 }],
    ['dlq/orders/v2', { type: 'dlq', name: 'orders', version: 2 }],
    ['views/orders/v2/redrive-v1', { type: 'view', name: 'orders', version: 2, redriveFrom: 1 }],
    ['dlq/orders/v2/redrive-v1', { type: 'dlq', name: 'orders', version: 2, redriveFrom: 1 }],
    ['manifest', { type: 'marker' }],
    ['manifest/orders/v2', { type: 'addition-marker', name: 'orders', version: 2 }],
  ])('%s', (text, kind) => {
    expect(parseArtifactKind(text)).toEqual(kind)
    expect(printArtifactKind(kind)).toBe(text)
  })

  test('parsing what was printed returns the kind', () => {
    fc.assert(
      fc.property(kinds, (kind) => {
        expect(parseArtifactKind(printArtifactKind(kind))).toEqual(kind)
      }),
    )
  })

  test('printing what was parsed returns the text', () => {
    const parts = fc.constantFrom('views', 'dlq', 'manifest', 'segment', 'orders', 'v1', 'v0', 'v01', 'redrive-v1', '..', '', 'Ä')
    const texts = fc.array(parts, { maxLength: 5 }).map((all) => all.join('/'))
    fc.assert(
      fc.property(texts, (text) => {
        const kind = parseArtifactKind(text)
        if (kind !== undefined) expect(printArtifactKind(kind)).toBe(text)
      }),
    )
  })

  test.each([
    '',
    'segments',
    'views/orders',
    'views/orders/v0',
    'views/Orders/v1',
    'views/orders/v1/',
    'manifest/orders/v1/redrive-v1',
  ])('%j is not a kind', (text) => expect(parseArtifactKind(text)).toBeUndefined())
})

test.each([
  ['parquet', { type: 'parquet' as const }],
  ['views/o/v2', { type: 'view' as const, name: 'o', version: 2 }],
])('a merged file of %s is not in the folder of its sources, but may be there', (folderOfKind, kind) => {
  const place = { prefix: 'p', endpointId: segment.endpointId, date: '2026-11-20' }
  const name = { id: 'compact-1', sha256: '0123456789abcdef99' }
  const [file, other] = ['dt=2026-11-20/compact-1-0123456789abcdef.parquet', 'dt=2026-11-20/compact-1-0.parquet']
  expect(compactedKey(place, kind, name)).toBe(`${folder}/compacted/${folderOfKind}/${file}`)
  expect(prefixOf(compactedKey(place, kind, name), segment.endpointId)).toBe('p')
  const keys = ['compacted/', '', 'other/'].map((above) => `${folder}/${above}${folderOfKind}/`)
  expect(keys.map((key) => isCompactedKey(key + file, place, kind, name))).toEqual([true, true, false])
  expect(keys.map((key) => isCompactedKey(key + other, place, kind, name))).toEqual([false, false, false])
})

describe('the key of an artifact', () => {
  test.each<[string, string, ArtifactKind]>([
    [`segments/dt=2026-11-20/${id}.wal.zst`, 'application/zstd', { type: 'segment' }],
    [`parquet/dt=2026-11-20/${id}.parquet`, 'application/vnd.apache.parquet', { type: 'parquet' }],
    [`views/o/v2/dt=2026-11-20/${id}.parquet`, 'application/vnd.apache.parquet', { type: 'view', name: 'o', version: 2 }],
    [
      `dlq/o/v2/dt=2026-11-20/${id}.redrive-v1.ndjson.gz`,
      'application/gzip',
      { type: 'dlq', name: 'o', version: 2, redriveFrom: 1 },
    ],
    [`commits/dt=2026-11-20/${id}.json`, 'application/json', { type: 'marker' }],
    [`commits/dt=2026-11-20/${id}.o-v2.json`, 'application/json', { type: 'addition-marker', name: 'o', version: 2 }],
  ])('%s', (key, contentType, kind) => {
    expect(objectKey('p', segment, kind)).toBe(`${folder}/${key}`)
    expect(objectKey('', segment, kind)).toBe(`${segment.endpointId}/${key}`)
    expect(contentTypeOf(kind)).toBe(contentType)
  })

  test('different kinds have different keys', () => {
    fc.assert(
      fc.property(kinds, kinds, (a, b) => {
        fc.pre(printArtifactKind(a) !== printArtifactKind(b))
        expect(objectKey('p', segment, a)).not.toBe(objectKey('p', segment, b))
      }),
    )
  })

  test('prefixOf returns the prefix of a key', () => {
    const prefixes = fc.constantFrom('', 'p', 'p/q', segment.endpointId, `p/${segment.endpointId}`)
    fc.assert(
      fc.property(prefixes, kinds, (prefix, kind) => {
        expect(prefixOf(objectKey(prefix, segment, kind), segment.endpointId)).toBe(prefix)
      }),
    )
  })

  test('parseMarkerKey returns the commit and the kind of markers only', () => {
    fc.assert(
      fc.property(kinds, (kind) => {
        const key = objectKey('p', segment, kind)
        expect(parseMarkerKey(key)).toEqual(isMarker(kind) ? { commitId: id, kind } : undefined)
        expect(key.startsWith(markerFolder('p', segment.endpointId))).toBe(isMarker(kind))
      }),
    )
  })
})
