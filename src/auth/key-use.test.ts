import { expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { keyLimits } from '#model/limits.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KeyUse } from './key-use.ts'

async function started({ connected = [] }: { readonly connected?: readonly string[] } = {}) {
  const clock = new ManualClock()
  const reports: string[][] = []
  const state = { isAway: false }
  const use = new KeyUse({
    report: async (ids) => {
      if (state.isAway) throw new Error('control is away')
      reports.push([...ids])
    },
    connected: () => connected,
    clock,
    logger: createLogger('test', 'silent'),
  })
  await use.start()
  const advance = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 2_000) {
      clock.advance(2_000)
      // A run ends, and sets its next timer, within a few microtasks.
      await new Promise(setImmediate)
    }
  }
  return { use, reports, state, advance, [Symbol.asyncDispose]: () => use.stop() }
}

test('a key is reported within seconds, and then once in each minute in which it is used', async () => {
  await using node = await started()
  node.use.add('a')
  node.use.add('b')
  await node.advance(2_000)
  node.use.add('a')
  await node.advance(56_000)
  expect(node.reports).toEqual([['a', 'b']])
  await node.advance(2_000)
  node.use.add('a')
  await node.advance(60_000)
  expect(node.reports).toEqual([['a', 'b'], ['a']])
})

test('the keys of open connections are reported in each minute', async () => {
  await using node = await started({ connected: ['mqtt'] })
  await node.advance(2_000)
  expect(node.reports).toEqual([['mqtt']])
  await node.advance(120_000)
  expect(node.reports).toEqual([['mqtt'], ['mqtt'], ['mqtt']])
})

test('a report that fails is repeated', async () => {
  await using node = await started()
  node.use.add('a')
  node.state.isAway = true
  await node.advance(10_000)
  node.state.isAway = false
  await node.advance(2_000)
  expect(node.reports).toEqual([['a']])
})

test('one report has a bounded number of keys, the next has the others', async () => {
  await using node = await started()
  for (let index = 0; index <= keyLimits.reportedMax; index += 1) node.use.add(String(index))
  await node.advance(4_000)
  expect(node.reports.map(({ length }) => length)).toEqual([keyLimits.reportedMax, 1])
})
