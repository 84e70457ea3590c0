import { expect, test } from 'vitest'
import { recordLines } from './record-lines.ts'

const record = '{"id":9007199254740993,"price":1.50,"a":{"b c":"x","list":[{"y":1},{"y":2}]},"none":[],"nil":null}'

const marked = (path: string | null) =>
  recordLines(record, path)
    ?.filter(({ isMarked }) => isMarked)
    .map(({ text }) => text.trim())

test('a record is indented, and its numbers stay as they are', () => {
  expect(
    recordLines(record, null)
      ?.map(({ text }) => text)
      .join('\n'),
  ).toBe(`{
  "id": 9007199254740993,
  "price": 1.50,
  "a": {
    "b c": "x",
    "list": [
      {
        "y": 1
      },
      {
        "y": 2
      }
    ]
  },
  "none": [],
  "nil": null
}`)
})

test.each([
  ['$.id', ['"id": 9007199254740993,']],
  [`$.a."b c"`, ['"b c": "x",']],
  [`$['a']['b c']`, ['"b c": "x",']],
  ['$.a.list[1].y', ['"y": 2']],
  ['$.a.list[*].y', ['"y": 1', '"y": 2']],
  ['$.none', ['"none": [],']],
  ['$.missing', []],
  ['$$.client_id', []],
  ['$', []],
  [null, []],
])('%s is marked', (path, lines) => {
  expect(marked(path)).toEqual(lines)
})

test('everything below a path is marked with it', () => {
  expect(marked('$.a.list[0]')).toEqual(['{', '"y": 1', '},'])
})

test('a text that is not JSON has no lines', () => {
  expect(recordLines('{"id": 1, broken', '$.id')).toBeUndefined()
})
