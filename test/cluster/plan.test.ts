import { expect, test } from 'vitest'
import { Random } from '../torture/random.ts'
import { faultKinds } from './faults/fault.ts'
import { drawPlan } from './plan.ts'
import { canMoveClocks } from './programs/host-clock.ts'

const textsOf = (seed: number) => drawPlan(new Random(seed), faultKinds, 'namespaces').map(({ text }) => text)

test('a plan has each kind once, and its seed repeats it', () => {
  const kinds = drawPlan(new Random(7), faultKinds, 'namespaces').map(({ kind }) => kind)
  expect(kinds.toSorted()).toEqual(faultKinds.filter((kind) => canMoveClocks || !kind.startsWith('clock')).toSorted())
  expect(textsOf(7)).toEqual(textsOf(7))
  expect(textsOf(7)).not.toEqual(textsOf(8))
})

test('on loopback addresses nothing is cut', () => {
  const plan = drawPlan(new Random(7), faultKinds, 'loopback')
  expect(plan.some(({ kind }) => kind === 'kill-node')).toBe(true)
  expect(plan.filter(({ kind }) => /^(cut|isolate)/.test(kind))).toEqual([])
})
