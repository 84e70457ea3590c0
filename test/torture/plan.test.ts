import { describe, expect, test } from 'vitest'
import { readOptions } from './options.ts'
import { describePlan, drawPlan, faultKinds } from './plan.ts'
import { Random, seedOfRound } from './random.ts'

const draw = (seed: number, round: number, kinds = faultKinds) =>
  drawPlan({ seed, round, random: new Random(seedOfRound(seed, round)), kinds, faultsMs: 20_000 })

describe('a plan', () => {
  test('is the same for the same seed and round, and another for others', () => {
    expect(draw(7, 3)).toEqual(draw(7, 3))
    expect(draw(7, 4).steps).not.toEqual(draw(7, 3).steps)
    expect(draw(8, 3).steps).not.toEqual(draw(7, 3).steps)
  })

  test('has every kind sooner or later, in the order of time', () => {
    const plans = Array.from({ length: 40 }, (_, round) => draw(1, round))
    expect(new Set(plans.flatMap(({ steps }) => steps.map(({ fault }) => fault.kind)))).toEqual(new Set(faultKinds))
    for (const { steps } of plans) {
      expect(steps.length).toBeGreaterThan(5)
      expect(steps.map(({ atMs }) => atMs)).toEqual(steps.map(({ atMs }) => atMs).toSorted((a, b) => a - b))
    }
  })

  test('has only the kinds that were asked for, and describes each step', () => {
    const plan = draw(1, 1, ['kill', 'power'])
    expect(plan.steps.map(({ fault }) => fault.kind).filter((kind) => kind !== 'kill' && kind !== 'power')).toEqual([])
    expect(describePlan(plan)).toHaveLength(plan.steps.length)
  })
})

describe('the options', () => {
  test('have defaults', () => {
    expect(readOptions([], 5)).toEqual({ minutes: 1, seed: 5, kinds: faultKinds, round: undefined, keep: false })
  })

  test('are read', () => {
    const args = ['--minutes', '0.5', '--seed', '9', '--only', 'kill,power', '--round', '2', '--keep']
    expect(readOptions(args, 5)).toEqual({ minutes: 0.5, seed: 9, kinds: ['kill', 'power'], round: 2, keep: true })
  })

  test.each([
    [['--minutes', 'x'], '--minutes: must be a number from 0.1 to 1440, not "x"'],
    [['--seed', '1.5'], '--seed: must be a whole number, not "1.5"'],
    [['--only', 'kil'], '--only: unknown kind "kil"; known are kill, '],
    [['--fast'], "Unknown option '--fast'"],
    [['5'], "Unexpected argument '5'"],
    [['--minutes'], "Option '--minutes <value>' argument missing"],
  ])('%j gets one clear line', (args, message) => {
    expect(() => readOptions(args, 5)).toThrow(message)
    expect(() => readOptions(args, 5)).toThrow(/^[^\n]+$/)
  })
})
