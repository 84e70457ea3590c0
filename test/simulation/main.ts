/**
 * `npm run simulate -- [--seed N] [--steps M] [--histories H | --minutes T] [--without SAFEGUARD]`: histories of the data plane. Exit code 1 if a law does not
 * hold. `--without` takes a safeguard out first.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { takeOut } from './safeguards.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    steps: { type: 'string', default: '1000' },
    minutes: { type: 'string' },
    histories: { type: 'string', default: '1' },
    without: { type: 'string' },
  },
})
if (values.without !== undefined) takeOut(values.without)
// Only now, so that the safeguard is missing in it.
const { runHistory } = await import('./history.ts')
const first = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed)
const steps = Number(values.steps)
const endMs = performance.now() + Number(values.minutes ?? 0) * 60_000
let [events, acknowledged] = [0, 0]
for (let seed = first; ; seed += 1) {
  const history = await runHistory(seed, steps)
  events += history.events
  acknowledged += history.acknowledged
  const histories = seed - first + 1
  if (history.broken.length > 0) {
    for (const line of history.last) console.log(`  ${line}`)
    for (const line of history.broken.slice(0, 20)) console.log(`broken: ${line}`)
    console.log(`found by history ${histories}; again: npm run simulate -- --seed ${seed} --steps ${steps}`)
    process.exit(1)
  }
  if (histories >= Number(values.histories) && performance.now() >= endMs) {
    const counts = `${histories} histories, ${events} events, ${acknowledged} requests acknowledged`
    console.log(`seed ${first}: ${counts}; digest of the last: ${history.digest}`)
    process.exit(0)
  }
}
