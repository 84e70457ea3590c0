import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Layout } from './frame.ts'
import { countRecords, forEachRecord, lineBlocks } from './records.ts'

const records = (text: string, layout: Layout = 'lines') => {
  const payload = Buffer.from(text)
  const found: string[] = []
  forEachRecord({ layout, payload }, (start, end, index) => {
    expect(index).toBe(found.length)
    found.push(payload.toString('utf8', start, end))
  })
  return found
}

describe('records of lines', () => {
  test.each([
    ['', []],
    ['\n', []],
    ['a', ['a']],
    ['a\n', ['a']],
    ['a\nb', ['a', 'b']],
    ['a\r\nb\r\n', ['a', 'b']],
    ['a\r\r\n', ['a\r']],
    ['\r\n\r\na\n\n \t\r\nb', ['a', 'b']],
    [' a \n', [' a ']],
    ['a\rb\n', ['a\rb']],
    ['\0\n', ['\0']],
    ['\uFEFF{}\n', ['\uFEFF{}']],
    ['\u2028\n', ['\u2028']],
  ])('%j', (text, expected) => {
    expect(records(text)).toEqual(expected)
    expect(countRecords({ layout: 'lines', payload: Buffer.from(text) })).toBe(expected.length)
  })

  test('agree with splitting the text', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', ' ', '\t', '\r', '\n', '\r\n', '{}', 'é')), (parts) => {
        const text = parts.join('')
        const expected = text
          .split('\n')
          .map((line) => line.replace(/\r$/, ''))
          .filter((line) => !/^[ \t\r]*$/.test(line))
        expect(records(text)).toEqual(expected)
      }),
    )
  })
})

test('a single record is the payload, even if it is empty or blank', () => {
  expect(records('', 'single')).toEqual([''])
  expect(records(' \n\n', 'single')).toEqual([' \n\n'])
})

test('texts end at record separators, and keep their line breaks', () => {
  expect(records('\x1e{\n"a":1\r\n}\x1e\x1e \r\n\x1e2\r\x1e', 'texts')).toEqual(['{\n"a":1\r\n}', '2\r'])
  expect(records('1', 'texts')).toEqual(['1'])
  expect(records('', 'texts')).toEqual([])
})

describe('blocks of lines', () => {
  const max = { records: 3, bytes: 10 }
  const blocksOf = (text: string) => {
    const payload = Buffer.from(text)
    return lineBlocks(payload, max)?.map(({ start, end, records }) => {
      const lines = payload.toString('utf8', start, end).split('\n')
      expect(lines).toHaveLength(records)
      expect(records === 1 || (records <= max.records && end - start <= max.bytes)).toBe(true)
      return lines
    })
  }

  test.each<[string, readonly (readonly string[])[] | undefined]>([
    ['', []],
    ['a', [['a']]],
    ['a\n', [['a']]],
    ['a\nb\nc\nd\n', [['a', 'b', 'c'], ['d']]],
    ['a\n012345678901\nb', [['a'], ['012345678901'], ['b']]],
    ['a\n\nb', undefined],
    ['\n', undefined],
    ['a\r\nb', undefined],
    ['a\n b', undefined],
    ['a\rb', [['a\rb']]],
  ])('%j', (text, expected) => {
    expect(blocksOf(text)).toEqual(expected)
  })

  test('have the records of the lines, or there are none', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', '{"b":1}', ' ', '\t', '\r', '\n', '\n', '\r\n', 'é'), { maxLength: 20 }),
        (parts) => {
          const text = parts.join('')
          const blocks = blocksOf(text)
          if (blocks !== undefined) expect(blocks.flat()).toEqual(records(text))
        },
      ),
      { numRuns: 2_000 },
    )
  })
})
