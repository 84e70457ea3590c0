import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { forEachRecord } from '#log/records.ts'
import { anyCuts, anyJson, anySpace, readBody } from '../../../../test/support/body-records.ts'
import { runs } from '../../../../test/support/thorough.ts'
import { JsonBody } from './json-body.ts'

const read = (body: string, cuts: readonly number[] = []) => readBody(new JsonBody(), body, cuts)

describe('a body that is one document', () => {
  test.each([
    '{"a":1}',
    ' {"a":1} \n',
    '{\n  "a": 1\n}\n',
    '"text"',
    '"a\\"b\\\\"',
    '12.5',
    'true',
    // Not JSON. Its views say so.
    '{"a":',
    '{]',
    'not json',
    '"half',
    '\uFEFF{"a":1}',
  ])('%j is one record, with all of its bytes', (body) => {
    expect(read(body)).toEqual({ layout: 'single', records: [body] })
  })

  test('does not exist if there is only white space', () => {
    expect(read(' \r\n\t\n')).toEqual({ layout: 'single', records: [] })
    expect(read('')).toEqual({ layout: 'single', records: [] })
  })

  test('is bounded by its size as sent', () => {
    expect(read('1'.repeat(MiB))).toMatchObject({ records: [expect.anything()] })
    expect(read(`${'1'.repeat(MiB)}\n`)).toMatchObject({
      code: 'payload_too_large',
      refused: expect.stringMatching(/^the record /),
    })
  })
})

describe('NDJSON that was sent as JSON', () => {
  test.each([
    ['{"a":1}\n{"a":2}\n', ['{"a":1}', '{"a":2}']],
    ['{"a":1}\r\n{"a":2}', ['{"a":1}', '{"a":2}']],
    ['\n\n{"a":1}\n\n \n{"a":2}', ['{"a":1}', '{"a":2}']],
    ['1\n2\n', ['1', '2']],
    ['"a"\n"b"', ['"a"', '"b"']],
    ['{"a":1}\n[2]\nnot json\n{"b":', ['{"a":1}', '[2]', 'not json', '{"b":']],
    ['{bad}\n{"a":2}', ['{bad}', '{"a":2}']],
    ['oops\n{"a":2}', ['oops', '{"a":2}']],
    ['\uFEFF{"a":1}\n{"a":2}', ['{"a":1}', '{"a":2}']],
    ['\uFEFF\n{}\n{', ['{}', '{']],
  ])('%j is a record per line', (body, records) => {
    expect(read(body)).toEqual({ layout: 'lines', records })
    expect(read(body, [3, 7, 8, 9])).toEqual({ layout: 'lines', records })
  })

  test('may be larger than a record, and names the line that is too long', () => {
    const line = `{"a":"${'x'.repeat(MiB / 2)}"}\n`
    expect(read(line.repeat(4))).toMatchObject({ layout: 'lines', records: { length: 4 } })
    expect(read(`\n{}\n\n"${'x'.repeat(MiB)}"\n`)).toMatchObject({ refused: expect.stringMatching(/^line 4 is longer/) })
  })

  test.each(['', '\n \n', '\uFEFF', '\uFEFF\r\n'])('bounds the line of the first document, too, after %j', (start) => {
    const line = (bytes: number) => `"${'x'.repeat(bytes - 2)}"`
    const two = (bytes: number) => `${start}${line(bytes)}\r\n{}\n`
    expect(read(two(MiB))).toMatchObject({ records: [line(MiB), '{}'] })
    const number = start.split('\n').length
    expect(read(two(MiB + 1))).toMatchObject({ refused: expect.stringMatching(`^line ${number} is longer`) })
  })

  test('keeps the first bytes of a line that are part of a byte order mark', () => {
    const records: string[] = []
    const payload = Buffer.concat([Buffer.from([0xef, 0xbb]), Buffer.from('a\n{}')])
    const found = new JsonBody()
    expect(found.push(payload) ?? found.end([payload])).toBeUndefined()
    forEachRecord({ layout: found.layout, payload }, (start, end) => records.push(payload.toString('latin1', start, end)))
    expect(records).toEqual(['\u00ef\u00bba', '{}'])
  })
})

describe('an array', () => {
  test.each([
    ['[]', []],
    [' [ ] ', []],
    ['[{"a":1}]', ['{"a":1}']],
    ['[{"a":1},{"a":2}]', ['{"a":1}', '{"a":2}']],
    [
      '\uFEFF [ {"a": [1, 2]} ,\r\n\t[3,{"b":"],["}] , "x,y", 1.5e3, null ]\n',
      ['{"a": [1, 2]}', '[3,{"b":"],["}]', '"x,y"', '1.5e3', 'null'],
    ],
    // Views reject invalid JSON, one record at a time.
    ['[{"a":1},{bad},nonsense]', ['{"a":1}', '{bad}', 'nonsense']],
  ])('%j is a record per element', (body, records) => {
    expect(read(body)).toEqual({ layout: 'lines', records })
  })

  test('keeps line breaks inside of elements', () => {
    const elements = ['{"a":1}', '{\n  "a": 2\r\n}', '{"b":"x"}', '[\n]']
    const body = `\n[\n  ${elements.join(',\n  ')}\n]\n`
    expect(read(body)).toEqual({ layout: 'texts', records: elements })
    for (let cut = 0; cut <= body.length; cut += 1) expect(read(body, [cut])).toEqual({ layout: 'texts', records: elements })
  })

  test.each([
    ['[{"a":1},{"a":2}', 'the array does not end (byte 16 of the body)'],
    ['[{"a":1},{"a":', 'the array does not end (byte 14 of the body)'],
    ['[{"a":1},]', 'element 2 of the array is missing (byte 9 of the body)'],
    ['[,1]', 'element 1 of the array is missing (byte 1 of the body)'],
    ['[{"a":1}{"a":2}]', 'after element 1 of the array a comma or ] is missing (byte 8 of the body)'],
    ['[1 2]', 'after element 1 of the array a comma or ] is missing (byte 3 of the body)'],
    ['[1}', 'after element 1 of the array a comma or ] is missing (byte 2 of the body)'],
    ['[1]\n[2]', 'more follows after the array (byte 4 of the body)'],
    ['[1]]', 'more follows after the array (byte 3 of the body)'],
    ['[1,"\u001e"]', 'JSON does not allow the control character 1e (byte 4 of the body)'],
  ])('%j is refused', (body, refused) => {
    expect(read(body)).toEqual({ code: 'validation_error', refused })
    expect(read(body, [1, 2, 5])).toEqual({ code: 'validation_error', refused })
  })

  test('may be larger than a record, and names the element that is too large', () => {
    const element = `"${'x'.repeat(MiB - 2)}"`
    expect(read(`[${element},${element}]`)).toMatchObject({ records: { length: 2 } })
    expect(read(`[1,"x${element.slice(1)},2]`)).toMatchObject({
      code: 'payload_too_large',
      refused: expect.stringMatching(/^element 2 of the array is longer/),
    })
  })
})

test.each([
  ['{"a":1}{"a":2}', 'a second JSON document follows the first (byte 7 of the body)'],
  ['{"a":1} {"a":2}', 'a second JSON document follows the first (byte 8 of the body)'],
  ['{\n"a":1\n}\n{\n"a":2\n}', 'a second JSON document follows the first (byte 10 of the body)'],
  ['{"a":1},\n{"a":2}', 'a second JSON document follows the first (byte 7 of the body)'],
  ['{"a":\n{"b":2}\n{"c":3}\n', 'the JSON document does not end (byte 22 of the body)'],
])('%j is refused, because its records are unclear', (body, refused) => {
  expect(read(body)).toEqual({ code: 'validation_error', refused })
  expect(read(body, [1, 6, 7, 8])).toEqual({ code: 'validation_error', refused })
})

describe('whatever is sent', () => {
  test('an array has the elements that a JSON parser finds, byte for byte, wherever its chunks are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(anySpace, anyJson, anySpace)), anySpace, anySpace, anyCuts, (elements, before, after, at) => {
        const body = `${before}[${elements.map((parts) => parts.join('')).join(',')}]${after}`
        const expected = elements.map(([, text]) => text)
        expect(read(body, at)).toMatchObject({ records: expected })
        expect(expected.map((text) => JSON.parse(text))).toEqual(JSON.parse(body))
      }),
      { numRuns: runs(300, 5_000) },
    )
  })

  test('no byte of a record changes, and cuts change nothing', () => {
    const part = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      '"',
      '\\',
      ' ',
      '\n',
      '\r',
      '\u001e',
      '1',
      'a',
      '{}',
      '{"a":1}',
      '\uFEFF',
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), anyCuts, (parts, at) => {
        const body = parts.join('')
        const whole = read(body)
        const cut = read(body, at)
        // The reported problem depends on what arrived first, so `refused` is not compared.
        expect(cut.records).toEqual(whole.records)
        expect(cut.layout).toBe(whole.layout)
        let from = 0
        for (const record of whole.records ?? []) {
          const place = body.indexOf(record, from)
          expect(place).toBeGreaterThanOrEqual(from)
          from = place + record.length
        }
        if (!body.includes('\n'))
          expect((whole.records ?? []).length <= 1 || body.trimStart().replace('\uFEFF', '').trimStart().startsWith('[')).toBe(
            true,
          )
      }),
      { numRuns: runs(1_000, 30_000) },
    )
  })
})
