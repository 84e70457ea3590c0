import { expect, test } from 'vitest'
import { readWhole, wholeInterval } from './whole-list.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)

/** A list of the API with this many items. */
function listOf(count: number) {
  const asked: object[] = []
  const read = async (page: { readonly limit: number; readonly offset?: number }) => {
    asked.push(page)
    const { limit, offset = 0 } = page
    const end = offset + limit
    return { items: numbers(count).slice(offset, end), total: count, next_offset: end < count ? end : null }
  }
  return { asked, read }
}

test.each([0, 1, 200, 201, 1_000])('a list of %i is read to its end', async (count) => {
  expect(await readWhole(listOf(count).read)).toEqual({ items: numbers(count), total: count })
})

test('the first page is asked for without an offset, and no page twice', async () => {
  const { asked, read } = listOf(401)
  await readWhole(read)
  expect(asked).toEqual([{ limit: 200 }, { limit: 200, offset: 200 }, { limit: 200, offset: 400 }])
})

test('a longer list says how much is missing', async () => {
  const { items, total } = await readWhole(listOf(5_000).read)
  expect([items.length, total]).toEqual([2_000, 5_000])
})

test('a list of several pages is asked for less often', () => {
  const interval = (count: number) => wholeInterval(2_000)({ state: { data: { items: numbers(count), total: count } } })
  expect([interval(0), interval(200), interval(1_000)]).toEqual([2_000, 2_000, 10_000])
  expect(wholeInterval(2_000)({ state: {} })).toBe(2_000)
})
