import { expect, test } from 'vitest'
import { joinSamples, pathsOf, splitSamples } from './samples.ts'

test.each<[string, string, readonly string[]]>([
  ['nothing', ' \n', []],
  ['one document over several lines', '{\n  "a": 1\n}\n', ['{\n  "a": 1\n}']],
  ['one per line, with empty lines', '{"a":1}\n\n{"a":2}\n', ['{"a":1}', '{"a":2}']],
  ['a list', '[{"a": 1}, 2]', ['{"a":1}', '2']],
  ['long numbers', '[{"id": 9007199254740993, "price": 1.50}]', ['{"id":9007199254740993,"price":1.50}']],
  ['lines that are not JSON', '{"a":1}\nnot json', ['{"a":1}', 'not json']],
])('%s', (_, text, samples) => {
  expect(splitSamples(text)).toEqual(samples)
})

test('records that arrived become a line each', () => {
  expect(splitSamples(joinSamples(['{\n  "a": 1\n}', '{"b":2}', 'not json']))).toEqual(['{ "a": 1 }', '{"b":2}', 'not json'])
})

test('paths lead to every value, also in lists and below unusual names', () => {
  const paths = pathsOf(['{"a":{"b c":1},"list":[{"x":"y"}],"nothing":null}', 'not json', '{"a":{"\\"":true}}'])
  expect(Object.fromEntries(paths.map(({ path, kind }) => [path, kind]))).toEqual({
    '$.a': 'object',
    '$.a."b c"': 'number',
    '$.list': 'list',
    '$.list[*]': 'object',
    '$.list[*].x': 'string',
    '$.a."\\""': 'boolean',
  })
})
