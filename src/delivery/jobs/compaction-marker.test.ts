import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import type { CompactionUnit } from '#model/job-protocol.ts'
import { decodeCompactionMarker, encodeCompactionMarker } from './compaction-marker.ts'

const [endpoint_id, viewId] = [newId(), newId()]
const sources = [0, 1].map((at) => ({ id: `source-${at}`, first_row: 3 * at, rows: 3, bytes: 1, sha256: 'ab' }))
const unit = {
  target: { id: newId(), bucket: 'lake', region: 'eu' },
  compaction: { id: `compact-${newId()}`, endpoint_id, kind: 'views/orders/v1/country=DE', sources },
} as unknown as CompactionUnit
const file = { key: 'k', bytes: 7, rows: 6, sha256: 'c'.repeat(64), view_id: viewId, view_version: 1 }
const body = Buffer.from(encodeCompactionMarker(unit, file, '2026-11-20T08:15:00.000Z'))
const flipped = (from: Buffer, byte: number, bit: number) => {
  const copy = Buffer.from(from)
  copy.writeUInt8(copy.readUInt8(byte) ^ (1 << bit), byte)
  return copy
}

test('no flipped bit goes unnoticed', () => {
  expect(decodeCompactionMarker(body)).toMatchObject({ compacted: { ...file, kind: unit.compaction.kind } })
  const unnoticed: string[] = []
  // The last byte is white space.
  for (let byte = 0; byte < body.length - 1; byte += 1)
    for (let bit = 0; bit < 8; bit += 1)
      if (decodeCompactionMarker(flipped(body, byte, bit)) !== undefined) unnoticed.push(`${byte}.${bit}`)
  expect(unnoticed).toEqual([])
})

test('the marker of a release before the digest is read, unless a name in it is damaged', () => {
  const older = Buffer.from(body.toString().replace(/,"digest":"\w+"/, ''))
  expect(decodeCompactionMarker(older)).toEqual(decodeCompactionMarker(body))
  expect(decodeCompactionMarker(flipped(older, older.indexOf('view_id'), 0))).toBe(undefined)
})
