import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isThorough, runs } from '../support/thorough.ts'
import { runHistory } from './history.ts'
import { readPastFailures } from './past-failures.ts'
import { safeguards } from './safeguards.ts'

const seed = fc.readConfigureGlobal().seed ?? randomInt(2 ** 30)

test(`every law holds in every history (INLET_TEST_SEED=${seed})`, { timeout: 600_000 }, async () => {
  for (let at = seed; at < seed + runs(15, 300); at += 1) {
    const { broken, last } = await runHistory({ seed: at, steps: 1_000 })
    expect(broken, `npm run simulate -- --seed ${at}\n${last.join('\n')}`).toEqual([])
  }
})

test('the same seed gives the same history', { timeout: 120_000 }, async () => {
  const [one, other] = [await runHistory({ seed, steps: 500 }), await runHistory({ seed, steps: 500 })]
  expect(one).toEqual(other)
})

test('failures of the past stay away', { timeout: 120_000 }, async () => {
  for (const failure of readPastFailures()) expect((await runHistory(failure)).broken, failure.broke).toEqual([])
})

/** Most of these take seconds to find. */
const sought = safeguards.filter(({ redundant }) => redundant === undefined)
test.each(isThorough ? sought : sought.filter(({ name }) => name.includes('turn')))(
  'a law breaks without a safeguard: $name',
  { timeout: 600_000 },
  async ({ name, histories = 200 }) => {
    const program = join(import.meta.dirname, 'main.ts')
    const options = ['--seed', '5000', '--steps', '2000', '--histories', String(histories), '--without', name]
    const ended = await promisify(execFile)(process.execPath, [program, ...options]).catch((error: { stdout: string }) => error)
    expect(ended.stdout).toMatch(/^broken: /m)
    expect(ended.stdout).toMatch(/^\d+ of \d+ faults break it: /m)
  },
)
