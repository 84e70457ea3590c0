import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { GiB, MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { FairSlots } from '#lib/fair-slots.ts'
import { system } from '#lib/system.ts'
import { aBoundView } from '../../../test/support/delivery-node.ts'
import { ScriptedConversions } from '../../../test/support/scripted-conversions.ts'
import { runs } from '../../../test/support/thorough.ts'
import { until } from '../../../test/support/until.ts'
import { ConversionRunner } from './conversion-runner.ts'
import { ExpensiveViews } from './expensive-views.ts'
import { conversionLimits } from './limits.ts'
import { type BuiltArtifacts, SegmentBuild } from './segment-build.ts'
import { groupsOf } from './view-groups.ts'

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
        if (groups.length > 1) expect(Math.min(...sizes)).toBeGreaterThanOrEqual(conversionLimits.groupViewsMin)
      },
    )
    fc.assert(property, { numRuns: runs(300, 10_000) })
  })
})

/** Its segments are opened by nobody. */
const source = { location: '', filesOf: () => [] }

let scratch = ''
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'inlet-groups-'))
})
afterEach(() => rm(scratch, { recursive: true }))

/** Builds groups in a slot of an account, in processes that a test ends. The views of a group are named after it. */
class Builds {
  readonly pool = new ScriptedConversions()
  readonly slots: FairSlots
  readonly stop = new AbortController()

  constructor(capacity: number) {
    this.slots = new FairSlots({ capacity, clock: systemClock })
  }

  /** The groups that are being built. */
  get running(): ReadonlyMap<string, ScriptedConversions['running'][number]> {
    return new Map(this.pool.running.map((running) => [running.task.views[0]?.name.charAt(0) ?? '', running]))
  }

  async convert(groups: readonly string[]): Promise<BuiltArtifacts> {
    const owner = { tenant: 'a', member: 'e', weight: 1 }
    const lent = {
      count: this.slots.capacity - 1,
      lend: (signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>) =>
        this.slots.run(owner, { priority: 'low', signal }, work),
    }
    const views = groups.flatMap((group) => ['a', 'b', 'c', 'd'].map((view) => aBoundView({ name: `${group}${view}` })))
    const segment = { logName: 'log', incarnation: 'abcdefghij', seq: 0 }
    const request = { segment, bytes: GiB, outputFormats: ['parquet_views'] as const, views, memoryBytes: MiB }
    const runner = new ConversionRunner({ ...system, pool: this.pool, segments: source, scratch })
    const build = new SegmentBuild(runner, new ExpensiveViews(), request, this.slots.capacity)
    const { signal } = this.stop
    try {
      return must(await this.slots.run(owner, { signal }, (signal) => build.attempt(lent, signal)), 'all groups')
    } catch (error) {
      await build.remove()
      throw error
    }
  }

  /** Another account takes a slot until it is released. */
  async take(): Promise<() => void> {
    const [taken, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const other = { tenant: 'other', member: 'other', weight: 1 }
    const taking = this.slots.run(other, { signal: this.stop.signal }, () => {
      taken.resolve()
      return released.promise
    })
    // It is ended by `stop`, too.
    taking.catch(() => taken.resolve())
    await taken.promise
    return released.resolve
  }
}

const failure = { reply: { failure: { kind: 'fault', message: 'fails' } } } as const

const namesOf = ({ files }: BuiltArtifacts) =>
  files.flatMap(({ kind }) => (kind.type === 'view' ? (kind.name.endsWith('a') ? kind.name.charAt(0) : []) : kind.type))

test('groups are built at once in slots that nobody else wants, and raw Parquet is in the result once', async () => {
  const builds = new Builds(2)
  const converted = builds.convert(['1', '2', '3'])
  await until('two builds', () => builds.running.size === 2)
  for (const group of ['2', '1', '3']) {
    await until(`the build of ${group}`, () => builds.running.has(group))
    await builds.running.get(group)?.succeed()
  }
  const built = await converted
  expect(namesOf(built)).toEqual(['parquet', '1', '2', '3'])
  expect(await built.isComplete()).toBe(true)
  await built.remove()
  expect(await readdir(scratch)).toEqual([])
})

test('a lent slot goes back to another account, and its group is built in the slot of the conversion', async () => {
  const builds = new Builds(2)
  const converted = builds.convert(['1', '2'])
  await until('two builds', () => builds.running.size === 2)
  const release = await builds.take()
  expect([...builds.running.keys()]).toEqual(['1'])
  await builds.running.get('1')?.succeed()
  await until('the build of 2', () => builds.running.has('2'))
  await builds.running.get('2')?.succeed()
  expect(namesOf(await converted)).toEqual(['parquet', '1', '2'])
  release()
})

test.each(['1', '2'])('if group %s fails, nothing is left', async (failing) => {
  const builds = new Builds(2)
  const converted = builds.convert(['1', '2', '3'])
  converted.catch(() => undefined)
  await until('two builds', () => builds.running.size === 2)
  await builds.running.get(failing === '1' ? '2' : '1')?.succeed()
  await until('the build of 3', () => builds.running.has('3'))
  builds.running.get(failing)?.end(failure)
  await expect(converted).rejects.toThrow('fails')
  expect([builds.running.size, await readdir(scratch)]).toEqual([0, []])
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
      async (capacity, wanted, events) => {
        const builds = new Builds(capacity)
        const groups = Array.from({ length: Math.min(wanted, 2 * capacity) }, (_, index) => `${index}`)
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
          if (kind === 'end') await chosen?.succeed()
          else if (kind === 'fail') chosen?.end(failure)
          else if (kind === 'take' && taken.length < capacity - 1) taken.push(await builds.take())
          else if (kind === 'release') taken.pop()?.()
          else if (kind === 'stop') builds.stop.abort(new Error('stops'))
        }
        for (const release of taken) release()
        await until('the end', async () => {
          for (const { succeed } of builds.running.values()) await succeed()
          return outcome !== undefined
        })
        await converted
        expect(builds.running.size).toBe(0)
        if (outcome instanceof Error) expect(outcome.message).toMatch(/^(fails|stops)$/)
        else {
          expect(outcome === undefined ? [] : namesOf(outcome)).toEqual(['parquet', ...groups])
          expect(await outcome?.isComplete()).toBe(true)
          await outcome?.remove()
        }
        expect(await readdir(scratch)).toEqual([])
      },
    ),
    { numRuns: runs(40, 300) },
  )
})
