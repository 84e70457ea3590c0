import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readBatches } from './batches.ts'

const decoder = new TextDecoder()

async function batchesOf(text: string, cuts: readonly number[], bytesMax: number) {
  const bytes = new TextEncoder().encode(text)
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  async function* chunks() {
    for (const [index, place] of places.slice(1).entries()) yield bytes.subarray(places[index], place)
  }
  return Array.fromAsync(readBatches(chunks(), { bytesMax }), ({ lines, firstLine, end }) => ({
    lines: lines.map((line) => decoder.decode(line)),
    firstLine,
    end,
  }))
}

test('however a stream arrives, its batches are the same, and have all lines that are not blank', async () => {
  const line = fc.oneof(fc.constantFrom('', ' ', '\t\r', '{}\r', 'ü😀'), fc.string({ maxLength: 30 }))
  const cuts = fc.array(fc.nat(), { maxLength: 10 })
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 30 }),
      fc.boolean(),
      cuts,
      fc.integer({ min: 1, max: 60 }),
      async (given, ends, at, max) => {
        const text = given.map((each) => each.replaceAll('\n', '')).join('\n') + (ends ? '\n' : '')
        const batches = await batchesOf(text, at, max)
        expect(batches).toEqual(await batchesOf(text, [], max))
        const lines = text.split('\n')
        const whole = lines.filter((each) => !/^[ \t\r]*$/.test(each)).map((each) => `${each}\n`)
        expect(batches.flatMap((batch) => batch.lines)).toEqual(whole)
        for (const batch of batches) {
          expect(`${lines[batch.firstLine - 1]}\n`).toBe(batch.lines[0])
          const bytes = batch.lines.reduce((sum, each) => sum + Buffer.byteLength(each), 0)
          expect(batch.lines.length === 1 || bytes <= max).toBe(true)
        }
      },
    ),
    { numRuns: 500 },
  )
})

test('a line that is too long ends the batches, after the lines before it, without reading all of it', async () => {
  let read = 0
  async function* chunks() {
    yield Buffer.from('first\n\nlong')
    for (;;) {
      read += 1
      yield Buffer.alloc(64 * 1024, 'x')
    }
  }
  const batches = readBatches(chunks(), { bytesMax: 1000 })
  expect((await batches.next()).value).toMatchObject({ firstLine: 1, end: 7 })
  await expect(batches.next()).rejects.toThrow('line 3 is longer than 1 MiB')
  expect(read).toBeLessThan(20)
})

test('lines of a slow stream do not wait for others', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  async function* chunks() {
    yield Buffer.from('a\nb\nhal')
    await promise
    yield Buffer.from('f\n')
  }
  const batches = readBatches(chunks(), { bytesMax: 1000, lingerMs: 5 })
  const first = (await batches.next()).value
  expect(first?.lines.map((line: Uint8Array) => decoder.decode(line))).toEqual(['a\n', 'b\n'])
  resolve()
  expect((await batches.next()).value).toMatchObject({ firstLine: 3 })
  expect(await batches.next()).toMatchObject({ done: true })
})

test('a byte order mark is not part of the first record', async () => {
  const expected = [{ lines: ['{}\n', '\ufeff1\n'], firstLine: 1, end: 11 }]
  const decode = new TextDecoder('utf-8', { ignoreBOM: true })
  async function* chunks() {
    yield new TextEncoder().encode('\ufeff{}\n\ufeff1\n')
  }
  const batches = await Array.fromAsync(readBatches(chunks(), { bytesMax: 100 }))
  expect(batches.map((batch) => ({ ...batch, lines: batch.lines.map((line) => decode.decode(line)) }))).toEqual(expected)
})
