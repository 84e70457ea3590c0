import { describe, expect, test, vi } from 'vitest'
import { seededRandom } from '#lib/random.ts'
import { countRecords } from '#log/records.ts'
import { recordLimits } from '#model/limits.ts'
import { LineCounter } from './line-counter.ts'

type Counted = { readonly fits: boolean; readonly records: number; readonly line: number }

function count(chunks: readonly (string | Buffer)[]): Counted {
  const counter = new LineCounter()
  const fits = chunks.every((chunk) => counter.push(Buffer.from(chunk)) === undefined) && counter.end() === undefined
  return { fits, records: counter.records, line: counter.line }
}

describe('records of lines', () => {
  test.each(['\n', '\r\n', '1\n'])('lines of %j are counted without a search for each', (line) => {
    const chunk = Buffer.from(line.repeat(10_000))
    const search = vi.spyOn(chunk, 'indexOf')
    const counter = new LineCounter()
    counter.push(chunk)
    expect(counter.line).toBe(10_001)
    expect(search.mock.calls.length).toBeLessThan(3)
  })

  test('a line may span many chunks', () => {
    expect(count(['{"a"', ':', '1}', '\r', '\n', ' ', '\t', '\n{', '}'])).toMatchObject({ records: 2, line: 3 })
  })

  test('a line of exactly the bound fits, with LF, CRLF or no line end', () => {
    const longest = Buffer.alloc(recordLimits.bytesMax, 'x')
    for (const end of ['', '\n', '\r\n', '\r']) {
      expect(count(['{}\n', longest, end, end === '' ? '' : '{}\n'])).toMatchObject({ fits: end !== '\r' })
      expect(count([Buffer.concat([longest, Buffer.from(end)])])).toMatchObject({ fits: true, records: 1 })
    }
  })

  test('one byte more is rejected as soon as it arrives, with its line number', () => {
    const tooLong = Buffer.alloc(recordLimits.bytesMax + 1, 'x')
    expect(count(['{}\n\n', tooLong])).toMatchObject({ fits: false, line: 3 })
    expect(count([Buffer.concat([Buffer.from('{}\n'), tooLong, Buffer.from('\n{}\n')])])).toMatchObject({ fits: false, line: 2 })
    expect(count(['{}\n{', tooLong.subarray(1), '}\n'])).toMatchObject({ fits: false, line: 2 })
    const counter = new LineCounter()
    expect(counter.push(tooLong)).toMatchObject({ code: 'payload_too_large', message: expect.stringMatching(/^line 1 /) })
  })

  test('a long blank line has the same bound', () => {
    expect(count([Buffer.alloc(recordLimits.bytesMax + 1, ' ')])).toMatchObject({ fits: false, line: 1 })
  })

  test('counts like log/records.ts, wherever the chunks are cut', () => {
    const seed = Math.floor(Math.random() * 2 ** 32)
    const next = random(seed)
    const alphabet = [10, 10, 13, 32, 9, 123, 125, 0, 0xff, 0xef]
    for (let round = 0; round < 3_000; round += 1) {
      const body = Buffer.from(Array.from({ length: next(60) }, () => alphabet[next(alphabet.length)] ?? 0))
      const chunks: Buffer[] = []
      for (let at = 0; at < body.length; ) {
        const end = at + 1 + next(8)
        chunks.push(body.subarray(at, end))
        at = end
      }
      const counter = new LineCounter()
      for (const chunk of chunks) expect(counter.push(chunk)).toBeUndefined()
      expect(counter.end()).toBeUndefined()
      expect(counter.records, `seed ${seed}, body ${body.toString('hex')}`).toBe(countRecords({ layout: 'lines', payload: body }))
    }
  })
})

/** Small integers from a seed. */
function random(seed: number): (below: number) => number {
  const { fraction } = seededRandom(seed)
  return (below) => Math.floor(fraction() * below)
}
