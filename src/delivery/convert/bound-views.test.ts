import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import type { BoundView } from '#model/snapshot.ts'
import { viewsAt } from './bound-views.ts'

const at = (ms: number) => isoTimestamp(1_800_000_000_000 + ms)

function aView(
  id: string,
  [from, to, canary]: readonly [from: number, to?: number | undefined, canary?: number | undefined],
  more: Partial<BoundView> = {},
): BoundView {
  return {
    ...{ binding_id: `binding ${from}`, view_id: id, name: id, version: 1, definition: { columns: [] }, is_required: false },
    activated_at: at(from),
    deactivated_at: to === undefined ? null : at(to),
    canary_start_ts: canary === undefined ? null : at(canary),
    ...more,
  }
}

const namesAt = (views: readonly BoundView[], ms: number) => viewsAt(views, at(ms)).map(({ name }) => name)

test.each<[string, readonly [from: number, to?: number | undefined, canary?: number | undefined], readonly number[]]>([
  ['an attached view applies from its attachment on', [10], [10, 11, 14, 15, 99]],
  ['a detached one until right before it was detached', [10, 15], [10, 11, 14]],
  ['a canary from its start on', [10, undefined, 15], [15, 99]],
  ['a canary that starts in the past from its attachment on', [10, undefined, 1], [10, 11, 14, 15, 99]],
  ['a canary that was detached before its start never', [10, 15, 15], []],
])('%s', (_, times, applies) => {
  const sealed = [0, 9, 10, 11, 14, 15, 99]
  expect(sealed.filter((ms) => namesAt([aView('v', times)], ms).length > 0)).toEqual(applies)
})

test('a required view is optional once it is detached', () => {
  const views = [aView('a', [1], { is_required: true }), aView('b', [1, 9], { is_required: true })]
  expect(viewsAt(views, at(5)).map(({ is_required }) => is_required)).toEqual([true, false])
})

test('a view has one output, whichever of its bindings overlap', () => {
  const binding = fc.record({
    from: fc.nat(20),
    to: fc.option(fc.nat(20), { nil: undefined }),
    view: fc.constantFrom('a', 'b', 'c'),
  })
  fc.assert(
    fc.property(fc.array(binding), fc.nat(20), (bindings, ms) => {
      const views = bindings.map(({ from, to, view }) => aView(view, [from, to]))
      const active = bindings.filter(({ from, to = Number.POSITIVE_INFINITY }) => from <= ms && ms < to).map(({ view }) => view)
      expect(namesAt(views, ms).toSorted()).toEqual([...new Set(active)].toSorted())
    }),
  )
})
