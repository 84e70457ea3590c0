import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { MiB } from './bytes.ts'
import { IdleTrimmer } from './idle-trimmer.ts'

function started() {
  const clock = new ManualClock()
  const state = { total: 40 * MiB, used: 20 * MiB, cpu: 0, trims: 0 }
  new IdleTrimmer({
    clock,
    collectGarbage: () => {
      state.trims += 1
      state.total = state.used + MiB
    },
    heap: () => state,
    cpuMicros: () => state.cpu,
  }).start()
  return { clock, state }
}

describe('the idle trimmer', () => {
  test('trims once after the start, and again when the heap has grown, at most every 30 seconds', () => {
    const { clock, state } = started()
    clock.advance(5_000)
    expect(state.trims).toBe(1)
    clock.advance(60_000)
    expect(state.trims).toBe(1)
    state.total += 8 * MiB
    clock.advance(5_000)
    expect(state.trims).toBe(2)
    state.total += 8 * MiB
    clock.advance(25_000)
    expect(state.trims).toBe(2)
    clock.advance(5_000)
    expect(state.trims).toBe(3)
  })

  test('leaves a busy process alone until it is idle', () => {
    const { clock, state } = started()
    for (let second = 5; second <= 30; second += 5) {
      state.cpu += 300_000
      clock.advance(5_000)
    }
    expect(state.trims).toBe(0)
    state.cpu += 200_000
    clock.advance(5_000)
    expect(state.trims).toBe(1)
  })

  test('leaves a large heap alone until it is small', () => {
    const { clock, state } = started()
    state.used = 65 * MiB
    state.total = 200 * MiB
    clock.advance(5_000)
    expect(state.trims).toBe(0)
    state.used = MiB
    clock.advance(5_000)
    expect(state.trims).toBe(1)
  })

  test('V8 returns the memory of garbage', () => {
    const trim = () => {
      const clock = new ManualClock()
      new IdleTrimmer({ clock, heap: () => ({ total: 40 * MiB, used: 0 }), cpuMicros: () => 0 }).start()
      clock.advance(5_000)
    }
    // Otherwise the garbage may fit into memory that is free already.
    trim()
    const before = process.memoryUsage().heapTotal
    let garbage: unknown[] | undefined = Array.from({ length: 500_000 }, (_, index) => ({ index }))
    const during = process.memoryUsage().heapTotal
    expect(during).toBeGreaterThan(before + 8 * MiB)
    garbage = undefined
    trim()
    expect([garbage, process.memoryUsage().heapTotal]).toEqual([undefined, expect.toSatisfy((total) => total < during - 8 * MiB)])
  })
})
