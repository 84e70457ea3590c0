import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isThorough } from '../support/thorough.ts'
import { measureWithout } from './measure-safeguards.ts'
import { isThere, safeguards } from './safeguards.ts'

const seed = fc.readConfigureGlobal().seed ?? randomInt(2 ** 30)

const run = promisify(execFile)

/** .ci/run has more histories, and those that failed before. */
test(`the same seed gives the same history in two processes (INLET_TEST_SEED=${seed})`, { timeout: 120_000 }, async () => {
  const history = async () => {
    const options = ['--seed', String(seed), '--steps', '1000']
    const ran = run(process.execPath, [join(import.meta.dirname, 'main.ts'), ...options])
    // One that breaks a law prints it.
    return (await ran.catch((error: { readonly stdout: string }) => error)).stdout
  }
  const [one, other] = await Promise.all([history(), history()])
  expect(one).toContain('1 histories')
  expect(one).toBe(other)
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
