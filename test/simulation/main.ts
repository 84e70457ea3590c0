/**
 * `npm run simulate -- [--seed N] [--steps M] [--histories H | --minutes T] [--without SAFEGUARD | --safeguards]`: histories of the data plane. Without a
 * seed the failures of the past come first. Exit code 1 if a law does not hold. `--without` takes a safeguard out first, `--safeguards` each one, and
 * prints which history found it.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { History, Plan } from './history.ts'
import { reportSafeguards } from './measure-safeguards.ts'
import { keepFailure, readPastFailures } from './past-failures.ts'
import { findRealCalls } from './real-calls.ts'
import { takeOut } from './safeguards.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    steps: { type: 'string' },
    minutes: { type: 'string' },
    histories: { type: 'string', default: '1' },
    without: { type: 'string' },
    safeguards: { type: 'boolean', default: false },
  },
})
if (values.safeguards) process.exit((await reportSafeguards()) ? 0 : 1)
if (values.without !== undefined) takeOut(values.without)
// Only now, so that the safeguard is missing in it.
const [{ runHistory }, { shrink }] = [await import('./history.ts'), await import('./shrink.ts')]

/** Names the history that runs. */
let running = ''
process.on('uncaughtException', (error) => {
  console.log(`broken: nobody caught it: ${error.stack}`)
  console.log(running)
  process.exit(1)
})

async function mustHold(plan: Plan, count: number): Promise<History> {
  running = `found by history ${count}; again: npm run simulate -- --seed ${plan.seed} --steps ${plan.steps}`
  const { value: history, calls } = await findRealCalls(() => runHistory(plan))
  const broken = [...calls, ...history.broken]
  const [broke] = broken
  if (broke === undefined) return history
  for (const line of history.last) console.log(`  ${line}`)
  for (const line of broken.slice(0, 20)) console.log(`broken: ${line}`)
  console.log(running)
  if (plan.kept !== undefined) console.log(`a failure of the past, with these faults only: ${plan.kept.join(', ')}`)
  else if (history.broken.length > 0) {
    const kept = await shrink(plan, history)
    console.log(`${kept.length} of ${history.faults.length} faults break it: ${kept.join(', ')}`)
    if (values.without === undefined)
      console.log(`kept in past-failures.jsonl: ${keepFailure({ ...plan, kept, broke: broke.split('\n', 1)[0] ?? '' })}`)
  }
  process.exit(1)
}

/** Jobs take longer than most histories: some are long. */
const stepsOf = (count: number) => Number(values.steps ?? (count % 10 === 0 ? 10_000 : 1_000))
const past = values.seed === undefined && values.without === undefined ? readPastFailures() : []
for (const [at, failure] of past.entries()) await mustHold(failure, at + 1)
const first = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed)
const endMs = performance.now() + Number(values.minutes ?? 0) * 60_000
let [events, acknowledged] = [0, 0]
for (let count = 1; ; count += 1) {
  const history = await mustHold({ seed: first + count - 1, steps: stepsOf(count) }, count)
  events += history.events
  acknowledged += history.acknowledged
  if (count < Number(values.histories) || performance.now() < endMs) continue
  const counts = `${count} histories, ${events} events, ${acknowledged} requests acknowledged`
  console.log(`seed ${first}: ${counts}; digest of the last: ${history.digest}`)
  process.exit(0)
}
