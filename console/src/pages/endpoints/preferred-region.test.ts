import { expect, test } from 'vitest'
import { preferredRegion } from './preferred-region.ts'

test('a new endpoint goes where the newest one is served, or to the only region that has nodes', () => {
  const [fra, nyc] = [{ region: 'fra' }, { region: 'nyc' }]
  expect(preferredRegion(['fra', 'nyc'], [nyc, fra])).toBe('nyc')
  expect(preferredRegion(['loc'], [fra, nyc])).toBe('loc')
  expect(preferredRegion(['fra', 'nyc'], [])).toBeUndefined()
  expect(preferredRegion([], [fra])).toBeUndefined()
})
