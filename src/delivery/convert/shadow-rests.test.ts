import { expect, test } from 'vitest'
import { conversionLimits } from './limits.ts'
import { ShadowRests } from './shadow-rests.ts'

const shadow = { binding_id: 'a' }

/** Returns how many segments go by without the shadow. */
function skipped(rests: ShadowRests): number {
  let count = 0
  while (rests.skips(shadow)) count += 1
  return count
}

test('a shadow rests longer the more often it fails, and not at all after it succeeded', () => {
  const rests = new ShadowRests()
  expect(rests.skips(shadow)).toBe(false)
  const lengths = Array.from({ length: 9 }, () => {
    rests.add(shadow)
    return skipped(rests)
  })
  expect(lengths).toEqual([20, 40, 80, 160, 320, 640, 1_280, 1_280, 1_280])
  expect(lengths.at(-1)).toBe(conversionLimits.shadowRestSegmentsMax)
  rests.end(shadow)
  expect(skipped(rests)).toBe(0)
  rests.add(shadow)
  expect(rests.skips({ binding_id: 'b' })).toBe(false)
  expect(skipped(rests)).toBe(20)
})
