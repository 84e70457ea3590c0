import { expect, test } from 'vitest'
import { describeLost, type LostRecords } from './lost-records.ts'

const at = '2026-11-20T08:12:04.000Z'
const loss: LostRecords = { records: 5, bytes: 91, reported_at: at, cause: 'node_removed' }

test('a number of records is as of a report, and later ones come on top', () => {
  expect(describeLost(loss)).toBe(`up to 5 acknowledged records, as of ${at}, and what was acknowledged later`)
  expect(describeLost({ ...loss, records: 1 }, ' of shop')).toBe(
    `up to 1 acknowledged record of shop, as of ${at}, and what was acknowledged later`,
  )
})

test('no record is known, and later ones are lost', () => {
  expect(describeLost({ ...loss, records: 0 }, ' of shop')).toBe(
    `any record of shop, acknowledged after ${at} (none was known to wait then)`,
  )
})

test('a node that had not counted the records has bytes, and one that could not list them has no number', () => {
  expect(describeLost({ ...loss, records: null })).toBe(
    `91 bytes of acknowledged records, as of ${at}, and what was acknowledged later`,
  )
  expect(describeLost({ ...loss, records: null, bytes: 0 }, ' of shop')).toBe(
    `an unknown number of acknowledged records of shop, as of ${at}, and what was acknowledged later`,
  )
})

test('nothing comes on top of what a machine counted that had lost its place', () => {
  expect(describeLost({ ...loss, cause: 'left_on_disk' })).toBe(`up to 5 acknowledged records, as of ${at}`)
})
