import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GiB, MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { FairSlots } from '#lib/fair-slots.ts'
import { aBoundView } from '../../../test/support/delivery-node.ts'
import { runs } from '../../../test/support/thorough.ts'
import { until } from '../../../test/support/until.ts'
import { deliveryLimits } from '../segments/limits.ts'
import type { BuiltArtifacts } from './build-directory.ts'
import { buildGroups, groupsOf } from './view-groups.ts'

const views = (count: number) => Array.from({ length: count }, (_, index) => aBoundView({ name: `v${index}` }))

describe('groups', () => {
  test.each([
    ['many views of a large segment', 20, GiB, 2, [5, 5, 5, 5]],
    ['more slots', 20, GiB, 8, [4, 4, 4, 4, 4]],
    ['one slot', 20, GiB, 1, [20]],
    ['a small segment', 20, MiB, 8, [20]],
    ['few views', 3, GiB, 8, [3]],
    ['no view', 0, GiB, 8, [0]],
    ['views that cannot be divided', 9, GiB, 8, [5, 4]],
  ])('%s', (_, count, bytes, slots, sizes) => {
    const all = views(count)
    const groups = groupsOf(all, { bytes, slots })
    expect(groups.map((group) => group.length)).toEqual(sizes)
    expect(groups.flat()).toEqual(all)
  })

  test('none is small, and none is much larger than another', () => {
    const property = fc.property(
      fc.nat({ max: 300 }),
      fc.nat({ max: 2 * GiB }),
      fc.integer({ min: 1, max: 64 }),
      (count, bytes, slots) => {
        const all = views(count)
        const groups = groupsOf(all, { bytes, slots })
        const sizes = groups.map((group) => group.length)
        expect(groups.flat()).toEqual(all)
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1)
        expect(groups.length).toBeLessThanOrEqual(2 * slots)
        if (groups.length > 1) expect(Math.min(...sizes)).toBeGreaterThanOrEqual(deliveryLimits.groupViewsMin)
      },
    )
    fc.assert(property, { numRuns: runs(300, 10_000) })
  })
})

/** Groups whose builds a test ends. `alive` has the names of results whose files exist. */
class Builds {
  readonly running = new Map<string, { readonly end: (error?: Error) => void }>()
  readonly alive = new Set<string>()
  readonly slots: FairSlots
  readonly stop = new AbortController()
  started = 0

  constructor(capacity: number) {
    this.slots = new FairSlots({ capacity, clock: systemClock })
  }

  /** Builds groups in a slot of an account. */
  convert(groups: readonly string[]): Promise<BuiltArtifacts> {
    const owner = { group: 'a', member: 'e', weight: 1 }
    return this.slots.run(owner, { signal: this.stop.signal }, (signal) =>
      buildGroups({
        groups,
        build: (group, _, signal) => this.#build(group, signal),
        lend: (signal, work) => this.slots.run(owner, { priority: 'low', signal }, work),
        others: this.slots.capacity - 1,
        signal,
      }),
    )
  }

  /** Another account takes a slot until it is released. */
  async take(): Promise<() => void> {
    const [taken, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const other = { group: 'other', member: 'other', weight: 1 }
    const taking = this.slots.run(other, { signal: this.stop.signal }, () => {
      taken.resolve()
      return released.promise
    })
    // It is ended by `stop`, too.
    taking.catch(() => taken.resolve())
    await taken.promise
    return released.resolve
  }

  async #build(group: string, signal: AbortSignal): Promise<BuiltArtifacts> {
    expect(this.running.has(group)).toBe(false)
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.running.set(group, { end: (error) => (error === undefined ? resolve() : reject(error)) })
    this.started += 1
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    await promise.finally(() => this.running.delete(group))
    this.alive.add(group)
    const file = { path: group, bytes: 1, rows: 1, sha256: '' }
    return {
      files: [
        { kind: { type: 'parquet' }, ...file },
        { kind: { type: 'view', name: group, version: 1 }, ...file },
      ],
      views: [],
      failed: [],
      isComplete: () => this.alive.has(group),
      remove: async () => void this.alive.delete(group),
    }
  }
}

const namesOf = ({ files }: BuiltArtifacts) => files.map(({ kind }) => (kind.type === 'view' ? kind.name : kind.type))

test('groups are built at once in slots that nobody else wants, and raw Parquet is in the result once', async () => {
  const builds = new Builds(2)
  const converted = builds.convert(['1', '2', '3'])
  await until('two builds', () => builds.running.size === 2)
  for (const group of ['2', '1', '3']) {
    await until(`the build of ${group}`, () => builds.running.has(group))
    builds.running.get(group)?.end()
  }
  const built = await converted
  expect(namesOf(built)).toEqual(['parquet', '1', '2', '3'])
  expect(built.isComplete()).toBe(true)
  await built.remove()
  expect(builds.alive.size).toBe(0)
})

test('a lent slot goes back to another account, and its group is built in the slot of the conversion', async () => {
  const builds = new Builds(2)
  const converted = builds.convert(['1', '2'])
  await until('two builds', () => builds.running.size === 2)
  const release = await builds.take()
  expect([...builds.running.keys()]).toEqual(['1'])
  builds.running.get('1')?.end()
  await until('the build of 2', () => builds.running.has('2'))
  builds.running.get('2')?.end()
  expect(namesOf(await converted)).toEqual(['parquet', '1', '2'])
  release()
})

test.each(['1', '2'])('if group %s fails, nothing is left', async (failing) => {
  const builds = new Builds(2)
  const converted = builds.convert(['1', '2', '3'])
  await until('two builds', () => builds.running.size === 2)
  builds.running.get(failing === '1' ? '2' : '1')?.end()
  await until('the build of 3', () => builds.running.has('3'))
  builds.running.get(failing)?.end(new Error('a required view failed'))
  await expect(converted).rejects.toThrow('a required view failed')
  expect([builds.running.size, builds.alive.size]).toEqual([0, 0])
})

test('whatever happens in whatever order, all groups are in the result once, or nothing is left', async () => {
  const event = fc.oneof(
    { weight: 6, arbitrary: fc.constant('end' as const) },
    { weight: 2, arbitrary: fc.constant('take' as const) },
    { weight: 2, arbitrary: fc.constant('release' as const) },
    { weight: 1, arbitrary: fc.constantFrom('fail' as const, 'stop' as const) },
  )
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 2, max: 4 }),
      fc.integer({ min: 2, max: 7 }),
      fc.array(fc.tuple(event, fc.nat(6)), { maxLength: 25 }),
      async (capacity, count, events) => {
        const builds = new Builds(capacity)
        const groups = Array.from({ length: count }, (_, index) => `${index}`)
        let outcome: BuiltArtifacts | Error | undefined
        const converted = builds.convert(groups).then(
          (built) => (outcome = built),
          (error: unknown) => (outcome = error as Error),
        )
        const taken: (() => void)[] = []
        for (const [kind, choice] of events) {
          await setImmediate()
          const running = [...builds.running.values()]
          const chosen = running[choice % Math.max(1, running.length)]
          if (kind === 'end') chosen?.end()
          else if (kind === 'fail') chosen?.end(new Error('fails'))
          else if (kind === 'take' && taken.length < capacity - 1) taken.push(await builds.take())
          else if (kind === 'release') taken.pop()?.()
          else if (kind === 'stop') builds.stop.abort(new Error('stops'))
        }
        for (const release of taken) release()
        await until('the end', () => {
          for (const { end } of builds.running.values()) end()
          return outcome !== undefined
        })
        await converted
        expect(builds.running.size).toBe(0)
        if (outcome instanceof Error)
          expect([outcome.message, builds.alive.size]).toEqual([expect.stringMatching(/^(fails|stops)$/), 0])
        else {
          expect(outcome === undefined ? [] : namesOf(outcome)).toEqual(['parquet', ...groups])
          expect(builds.alive).toEqual(new Set(groups))
        }
      },
    ),
    { numRuns: runs(40, 300) },
  )
})
