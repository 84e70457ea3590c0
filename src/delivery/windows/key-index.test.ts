import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runs } from '../../../test/support/thorough.ts'
import {
  checkIndex,
  completeIndex,
  confirmSegment,
  findRegistered,
  forgetSegment,
  IndexDamaged,
  type IndexedView,
  rangeFor,
  readState,
  registerKeys,
  shortenIndex,
} from './key-index.ts'
import { closeLookup, findKeys } from './key-lookup.ts'

const second = 1_000_000
let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'inlet-windows-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const keyOf = (name: string | number) => createHash('sha256').update(String(name)).digest().subarray(0, 16)
const segment = (seq: number, sealedAtSeconds: number) => ({ id: `log-${seq}`, seq, sealedAtMicros: sealedAtSeconds * second })

function create(windowSeconds = 100): IndexedView {
  const view = { path: join(directory, 'view.db'), windowMicros: windowSeconds * second }
  expect(checkIndex(view).found).toBe('new')
  return view
}

function fileOf(names: readonly (string | number)[]): string {
  const path = join(directory, 'keys')
  writeFileSync(path, Buffer.concat(names.map(keyOf).toSorted(Buffer.compare)))
  return path
}

const register = (view: IndexedView, of: ReturnType<typeof segment>, ...names: readonly (string | number)[]) =>
  registerKeys(view, of, fileOf(names))

function known(view: IndexedView, of: ReturnType<typeof segment>, names: readonly (string | number)[]) {
  const found = findKeys({ path: view.path, ...rangeFor(view, of) }, Buffer.concat(names.map(keyOf)))
  closeLookup()
  return names.filter((_, at) => found[at] === 1)
}

describe('an index', () => {
  test('knows the keys of earlier segments until the window is over, and not those of the segment itself', () => {
    const view = create()
    register(view, segment(1, 1_000), 'a', 'b')
    register(view, segment(2, 1_050), 'c')
    expect(known(view, segment(3, 1_099), ['a', 'b', 'c', 'd'])).toEqual(['a', 'b', 'c'])
    expect(known(view, segment(3, 1_100), ['a', 'b', 'c', 'd'])).toEqual(['c'])
    expect(known(view, segment(2, 1_050), ['a', 'b', 'c', 'd'])).toEqual(['a', 'b'])
    expect(known(view, segment(3, 1_150), ['a', 'b', 'c', 'd'])).toEqual([])
  })

  test('judges a segment that is late, or sealed before by a clock that went back, by the newest one', () => {
    const view = create()
    register(view, segment(1, 1_000), 'a')
    register(view, segment(3, 1_080), 'b')
    expect(known(view, segment(2, 1_040), ['a', 'b'])).toEqual(['a', 'b'])
    expect(register(view, segment(2, 1_040), 'c').newestMicros).toBe(1_080 * second)
    expect(known(view, segment(4, 1_179), ['a', 'b', 'c'])).toEqual(['b', 'c'])
  })

  test('has the keys of the last conversion of a segment', () => {
    const view = create()
    register(view, segment(1, 1_000), 'a', 'b')
    expect(register(view, segment(1, 1_000), 'b', 'c')).toMatchObject({ keys: 2 })
    expect(known(view, segment(2, 1_001), ['a', 'b', 'c'])).toEqual(['b', 'c'])
    forgetSegment(view, 'log-1')
    expect(known(view, segment(2, 1_001), ['a', 'b', 'c'])).toEqual([])
    expect(findRegistered(view, ['log-1'])).toEqual([])
    expect(checkIndex(view).found).toBe('intact')
  })

  test('says which segment was the last, and whether it is committed', () => {
    const view = create()
    expect(readState(view)).toMatchObject({ last: null, sinceMicros: null, keys: 0 })
    register(view, segment(7, 1_000), 'a')
    confirmSegment(view, 'log-6')
    expect(readState(view).last).toEqual({ id: 'log-7', seq: 7, isCommitted: false })
    confirmSegment(view, 'log-7')
    expect(readState(view).last).toEqual({ id: 'log-7', seq: 7, isCommitted: true })
    expect(registerKeys(view, segment(8, 1_001), null).last).toMatchObject({ seq: 8, isCommitted: false })
    expect(completeIndex(view, 5).sinceMicros).toBe(5)
  })

  test('removes old keys in batches, and gives their room back', () => {
    const view = create()
    const many = Array.from({ length: 30_000 }, (_, at) => at)
    const full = register(view, segment(1, 1_000), ...many)
    expect(full.bytes / 30_000).toBeLessThan(60)
    register(view, segment(2, 2_000), 'a')
    expect(checkIndex(view).found).toBe('intact')
    for (const seq of [3, 4, 5]) register(view, segment(seq, 2_000 + seq), seq)
    expect(readState(view)).toMatchObject({ keys: 4, bytes: expect.toSatisfy((bytes: number) => bytes < full.bytes / 10) })
    expect(findRegistered(view, ['log-1', 'log-2'])).toEqual(['log-2'])
  })

  test('is shortened by its oldest part', () => {
    const view = create()
    for (const seq of [0, 1, 2, 3]) register(view, segment(seq, 1_000 + 25 * seq), `key ${seq}`)
    expect(shortenIndex(view)).toMatchObject({ keys: 3, sinceMicros: 1_025 * second })
    expect(known(view, segment(4, 1_099), ['key 0', 'key 1'])).toEqual(['key 1'])
    expect(checkIndex(view).found).toBe('intact')
    for (let times = 0; times < 5; times += 1) shortenIndex(view)
    expect(readState(view).keys).toBe(0)
  })
})

test('a flipped bit in an index is noticed, or changes nothing', async () => {
  const view = create()
  for (let seq = 0; seq < 40; seq += 1)
    register(view, segment(seq, 1_000 + seq), ...Array.from({ length: 20 }, (_, at) => `${seq} ${at}`))
  confirmSegment(view, 'log-39')
  completeIndex(view, 900 * second)
  const whole = readFileSync(view.path)
  const names = Array.from({ length: 800 }, (_, at) => `${at % 40} ${Math.floor(at / 40)}`).concat('other')
  const seen = () => JSON.stringify([known(view, segment(40, 1_120), names), { ...readState(view), bytes: 0 }])
  const before = seen()
  let noticed = 0
  fc.assert(
    fc.property(fc.nat(whole.length * 8 - 1), (bit) => {
      const flipped = Buffer.from(whole)
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      writeFileSync(view.path, flipped)
      const { found } = checkIndex(view)
      if (found === 'damaged') noticed += 1
      else expect(seen()).toBe(before)
    }),
    // One bit is of the version of the format, the others are of the names of columns.
    {
      numRuns: runs(150, 3_000),
      examples: [[18 * 8 + 1], ...Array.from({ length: 40 }, (_, at): [number] => [26_000 + 8 * at + 5])],
    },
  )
  expect(noticed).toBeGreaterThan(10)
}, 120_000)

test('an index that is cut, empty or something else is replaced', () => {
  const view = create()
  register(view, segment(1, 1_000), ...Array.from({ length: 2_000 }, (_, at) => at))
  const whole = readFileSync(view.path)
  for (const content of [whole.subarray(0, 5_000), whole.subarray(0, -4_096), Buffer.from('x'.repeat(9_000))]) {
    writeFileSync(view.path, content)
    expect(checkIndex(view).found).toBe('damaged')
    expect(readState(view)).toMatchObject({ keys: 0, last: null })
  }
  writeFileSync(view.path, 'x'.repeat(9_000))
  expect(() => readState(view)).toThrow(IndexDamaged)
})
