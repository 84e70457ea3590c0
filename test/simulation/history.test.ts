import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isThorough } from '../support/thorough.ts'
import { runHistory } from './history.ts'
import { measureWithout } from './measure-safeguards.ts'
import { isThere, safeguards } from './safeguards.ts'

const seed = fc.readConfigureGlobal().seed ?? randomInt(2 ** 30)

/** .ci/run has more histories, and those that failed before. */
test(`the same seed gives the same history (INLET_TEST_SEED=${seed})`, { timeout: 120_000 }, async () => {
  const [one, other] = [await runHistory({ seed, steps: 1_000 }), await runHistory({ seed, steps: 1_000 })]
  expect(one).toEqual(other)
  expect(one.broken, `npm run simulate -- --seed ${seed} --steps 1000\n${one.last.join('\n')}`).toEqual([])
})

test('every safeguard is where the list says', () => {
  expect(safeguards.filter((safeguard) => !isThere(safeguard)).map(({ name }) => name)).toEqual([])
})

/** Most of these take seconds to find. */
const sought = safeguards.filter(({ unfound }) => unfound === undefined)
test.each(isThorough ? sought : sought.filter(({ name }) => name.includes('turn')))(
  'a law breaks without a safeguard: $name',
  { timeout: 600_000 },
  async (safeguard) => {
    const { foundBy, printed } = await measureWithout(safeguard, { isShrunk: !isThorough })
    expect(foundBy, printed).toBeGreaterThan(0)
    expect(printed).toMatch(/^broken: /m)
    if (!isThorough) expect(printed).toMatch(/^\d+ of \d+ faults break it: /m)
  },
)
