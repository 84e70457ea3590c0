import { expect, test } from 'vitest'
import { Random } from '../torture/random.ts'
import { faultKinds } from './faults/fault.ts'
import { canOverlap } from './faults/situation.ts'
import { canWorsenLinks } from './network/link-quality.ts'
import { drawPlan } from './plan.ts'
import { canMoveClocks } from './programs/host-clock.ts'

const planOf = (seed: number, pairs: number, network: 'namespaces' | 'loopback' = 'namespaces') =>
  drawPlan(new Random(seed), { kinds: faultKinds, pairs, network, controlDownMs: 75_000 })
const textsOf = (seed: number) => planOf(seed, 3).map((faults) => faults.map(({ text }) => text))

test('a plan has each kind once, and its seed repeats it', () => {
  const kinds = planOf(7, 0).map(([fault]) => fault?.kind ?? '')
  expect(kinds.toSorted()).toEqual(
    faultKinds.filter((kind) => (canMoveClocks || !kind.includes('clock')) && (canWorsenLinks || kind !== 'bad-link')).toSorted(),
  )
  expect(textsOf(7)).toEqual(textsOf(7))
  expect(textsOf(7)).not.toEqual(textsOf(8))
})

test('pairs that overlap come last, each of other kinds', () => {
  const pairs = planOf(7, 10).filter(({ length }) => length > 1)
  expect(pairs).toHaveLength(10)
  for (const [one, other] of pairs) expect(one && other && canOverlap(one, other)).toBe(true)
  expect(
    new Set(
      pairs.map((pair) =>
        pair
          .map(({ kind }) => kind)
          .toSorted()
          .join(),
      ),
    ).size,
  ).toBe(10)
  expect(drawPlan(new Random(7), { kinds: ['kill-dns'], pairs: 1, network: 'namespaces', controlDownMs: 75_000 })).toHaveLength(1)
})

test('on loopback addresses nothing is cut', () => {
  const plan = planOf(7, 3, 'loopback').flat()
  expect(plan.some(({ kind }) => kind === 'kill-node')).toBe(true)
  expect(plan.filter(({ kind }) => /^(cut|isolate)/.test(kind))).toEqual([])
})
