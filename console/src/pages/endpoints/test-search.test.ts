import { expect, test } from 'vitest'
import { markOf, testSearch } from './test-search.ts'

const sent = { node: 'n', segment: 3, mark: 'x', after: 2.5, at: '2026-11-20T08:15:30.123Z' }

test('the address of a test event restores it', () => {
  expect(testSearch(sent)).toEqual(sent)
})

test.each([[{}], [{ ...sent, segment: 'three' }], [{ node: 'n', segment: 3 }]])(
  'an incomplete address is ignored, row %#',
  (search) => {
    expect(testSearch(search)).toEqual({})
  },
)

test('a time that is none is not shown', () => {
  expect(Date.parse(testSearch({ ...sent, at: 'yesterday' }).at ?? '')).toBeGreaterThan(0)
})

test('a record is found again by its id, or by its beginning', () => {
  const id = '4f8c1f0e-6a53-4c0e-9d3b-0000000000f1'
  expect(markOf(`{"type":"inlet.test_event","id":"${id}"}`)).toBe(id)
  expect(markOf('{"a":1}')).toBe('{"a":1}')
  expect(markOf('x'.repeat(1000))).toHaveLength(256)
})
