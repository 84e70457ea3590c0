import { expect, test } from 'vitest'
import { readChartSearch } from './chart-search.ts'
import { onlyKnown } from './only-known.ts'

test('what a reader leaves out is not there, also where the router adds what it was given', () => {
  const search = { range: 'for ever', endpoint: 'e1', other: 1 }
  expect({ ...search, ...onlyKnown(readChartSearch)(search) }).toEqual({ endpoint: 'e1' })
})
