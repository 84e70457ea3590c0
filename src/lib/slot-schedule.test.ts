import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../test/support/thorough.ts'
import { assert } from './assert.ts'
import { type SlotDecisions, SlotSchedule, type SlotTask } from './slot-schedule.ts'

type Work = SlotTask & {
  readonly arrivesAt: number
  readonly takesMs: number
  /** From the request to return the slot to the end of the work. */
  readonly endsMs: number
}

/** Runs work on a schedule in simulated time. Work that was preempted starts again. */
class Simulation {
  readonly #schedule: SlotSchedule<Work>
  readonly #events: { readonly at: number; readonly run: () => void }[] = []
  readonly running = new Map<Work, { readonly startedAt: number; isPreempted: boolean }>()
  readonly waiting = new Set<Work>()
  /** Slot time by tenant, including work that had to be repeated. */
  readonly used = new Map<string, number>()
  justPreempted: readonly Work[] = []
  finished = 0
  now = 0

  constructor(capacity: number, leadMsMax?: number) {
    this.#schedule = new SlotSchedule({ capacity, ...(leadMsMax !== undefined && { leadMsMax }) })
  }

  /** Looks at the schedule again after each interval. */
  checkEvery(ms: number, untilMs: number): void {
    for (let at = ms; at < untilMs; at += ms) this.#at(at, () => this.#apply(this.#schedule.check(this.now)))
  }

  add(work: Work): void {
    this.#at(work.arrivesAt, () => this.#request(work))
  }

  /** Checks after each event, and at most until a time. */
  run(check: () => void, untilMs = Number.POSITIVE_INFINITY): void {
    for (;;) {
      const next = this.#events.shift()
      if (next === undefined || next.at > untilMs) return
      this.now = next.at
      this.justPreempted = []
      next.run()
      check()
    }
  }

  #at(at: number, run: () => void): void {
    const index = this.#events.findIndex((event) => event.at > at)
    this.#events.splice(index < 0 ? this.#events.length : index, 0, { at, run })
  }

  #request(work: Work): void {
    this.waiting.add(work)
    this.#apply(this.#schedule.request(work, this.now))
  }

  #end(work: Work, run: object): void {
    const current = this.running.get(work)
    if (current !== run) return
    this.running.delete(work)
    this.used.set(work.tenant, (this.used.get(work.tenant) ?? 0) + this.now - current.startedAt)
    this.#apply(this.#schedule.end(work, this.now))
    if (current.isPreempted) this.#request(work)
    else this.finished += 1
  }

  #apply({ started, preempted }: SlotDecisions<Work>): void {
    for (const work of started) {
      expect(this.waiting.delete(work)).toBe(true)
      const run = { startedAt: this.now, isPreempted: false }
      this.running.set(work, run)
      this.#at(this.now + work.takesMs, () => this.#end(work, run))
    }
    this.justPreempted = preempted
    for (const work of preempted) {
      const run = this.running.get(work)
      assert(run !== undefined && !run.isPreempted, 'only running work is preempted, and only once')
      run.isPreempted = true
      this.#at(this.now + work.endsMs, () => this.#end(work, run))
    }
  }
}

const endsMsMax = 50
const anyWork = fc.record({
  tenant: fc.constantFrom('a', 'b', 'c', 'd'),
  member: fc.constantFrom('1', '2', '3'),
  priority: fc.constantFrom('normal' as const, 'normal' as const, 'low' as const),
  arrivesAt: fc.nat(10_000),
  takesMs: fc.nat(2_000),
  endsMs: fc.nat(endsMsMax),
})

function aSimulation(capacity: number, works: readonly Omit<Work, 'order' | 'weight'>[], weights: readonly number[] = [1]) {
  const simulation = new Simulation(capacity)
  const weightOf = (tenant: string) => weights[(tenant.codePointAt(0) ?? 0) % weights.length] ?? 1
  for (const [order, work] of works.entries()) simulation.add({ ...work, order, weight: weightOf(work.tenant) })
  return simulation
}

const anyLoad = { works: fc.array(anyWork, { minLength: 1, maxLength: 60 }), capacity: fc.integer({ min: 1, max: 5 }) }
const numRuns = runs(150, 3_000)

describe('whatever work arrives', () => {
  test('every slot is used while work waits, no more than there are, and everything is finished', () => {
    const weights = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(anyLoad.works, anyLoad.capacity, weights, (works, capacity, ofAccounts) => {
        const simulation = aSimulation(capacity, works, ofAccounts)
        simulation.run(() => {
          const { running, waiting } = simulation
          expect(running.size).toBeLessThanOrEqual(capacity)
          if (waiting.size > 0) expect(running.size).toBe(capacity)
        })
        expect(simulation.finished).toBe(works.length)
      }),
      { numRuns },
    )
  })

  test('work of low priority makes room for other work at once, and keeps no slot that is wanted', () => {
    fc.assert(
      fc.property(anyLoad.works, anyLoad.capacity, (works, capacity) => {
        const simulation = aSimulation(capacity, works)
        simulation.run(() => {
          const low = [...simulation.running].filter(([{ priority }, { isPreempted }]) => priority === 'low' && !isPreempted)
          const wanted = [...simulation.waiting].filter(({ priority }) => priority === 'normal').length
          const returning = [...simulation.running.values()].filter(({ isPreempted }) => isPreempted).length
          if (low.length > 0) expect(wanted).toBeLessThanOrEqual(returning)
        })
      }),
      { numRuns },
    )
  })

  test.each(['tenant', 'member'] as const)('no %s waits for long while another one holds more than its share', (level) => {
    const onLevel = ({ tenant, member }: Work) => (level === 'tenant' ? tenant : member)
    fc.assert(
      fc.property(anyLoad.works, anyLoad.capacity, (anyWorks, capacity) => {
        const works = anyWorks.map((work) => ({ ...work, priority: 'normal' as const }))
        const simulation = aSimulation(capacity, level === 'tenant' ? works : works.map((work) => ({ ...work, tenant: 'a' })))
        // Each that waits has a slot of its own returned for it, so each has its own time.
        let unfairSince = new Map<Work, number>()
        simulation.run(() => {
          // The slots were divided like this until now.
          for (const since of unfairSince.values()) expect(simulation.now - since).toBeLessThanOrEqual(endsMsMax)
          const { running, waiting } = simulation
          const holders = Map.groupBy(running.keys(), onLevel)
          const share = capacity / new Set([...holders.keys(), ...[...waiting].map(onLevel)]).size
          const heldBy = (key: string) => holders.get(key)?.length ?? 0
          const heldMost = Math.max(0, ...[...holders.keys()].map(heldBy))
          const isUnfairTo = (work: Work) =>
            heldMost > Math.max(1, Math.ceil(share)) && heldBy(onLevel(work)) < Math.max(1, Math.floor(share))
          const unfair = [...waiting].filter(isUnfairTo)
          unfairSince = new Map(unfair.map((work) => [work, unfairSince.get(work) ?? simulation.now]))
        })
      }),
      { numRuns },
    )
  })

  test('a tenant keeps one slot, so that it progresses', () => {
    fc.assert(
      fc.property(anyLoad.works, anyLoad.capacity, (works, capacity) => {
        const simulation = aSimulation(capacity, works)
        simulation.run(() => {
          for (const { tenant, priority } of simulation.justPreempted) {
            const kept = [...simulation.running].filter(([work, { isPreempted }]) => work.tenant === tenant && !isPreempted)
            if (priority === 'normal') expect(kept.map(([work]) => work.priority)).toContain('normal')
          }
        })
      }),
      { numRuns },
    )
  })
})

describe('over a long time', () => {
  /** Adds work of a second each, enough for every slot from a time on. */
  function keepBusy(
    simulation: Simulation,
    tenant: string,
    weight: number,
    fromMs: number,
    untilMs: number,
    slots: number,
  ): void {
    for (let at = fromMs; at < untilMs; at += 1_000) {
      for (let slot = 0; slot < slots; slot += 1) {
        const work = { tenant, member: '1', priority: 'normal' as const, weight, order: at, takesMs: 1_000, endsMs: 0 }
        simulation.add({ ...work, arrivesAt: at })
      }
    }
  }

  test('slot time is divided by weight', () => {
    const simulation = new Simulation(2)
    for (const [tenant, weight] of [
      ['a', 1],
      ['b', 2],
      ['c', 7],
    ] as const)
      keepBusy(simulation, tenant, weight, 0, 600_000, 2)
    simulation.run(() => undefined, 600_000)
    const used = ['a', 'b', 'c'].map((tenant) => (simulation.used.get(tenant) ?? 0) / 1_200_000)
    for (const [index, share] of [0.1, 0.2, 0.7].entries()) expect(used[index]).toBeCloseTo(share, 1)
  })

  test('a tenant may use every slot while nobody else wants one, and does not wait for long afterwards', () => {
    const simulation = new Simulation(2)
    keepBusy(simulation, 'a', 1, 0, 1_200_000, 2)
    for (const tenant of ['b', 'c', 'd']) keepBusy(simulation, tenant, 1, 600_000, 1_200_000, 2)
    let hadSlotAt = 0
    simulation.run(() => {
      if (simulation.now < 600_000) return
      if ([...simulation.running.keys()].some(({ tenant }) => tenant === 'a')) hadSlotAt = simulation.now
      expect(simulation.now - hadSlotAt).toBeLessThan(90_000)
    }, 1_200_000)
    expect(simulation.used.get('a')).toBeGreaterThan(1_200_000 + 120_000)
  })
})

describe('with a maximum lead', () => {
  const leadMsMax = 500
  const checkMs = 100
  const endsMs = 20

  test.each([2, 3, 10, 40])('a tenant that uses little waits for little beside %i that want every slot', (hostile) => {
    const simulation = new Simulation(2, leadMsMax)
    const work = { member: '1', priority: 'normal' as const, weight: 1, endsMs }
    const tenants = Array.from({ length: hostile }, (_, index) => `hostile ${index}`)
    for (const tenant of tenants)
      for (let order = 0; order < 40; order += 1) simulation.add({ ...work, tenant, order, arrivesAt: 0, takesMs: 10_000 })
    // At first, nobody has used anything, and all take turns.
    const firstRoundMs = hostile * (leadMsMax + checkMs + endsMs)
    const endMs = firstRoundMs + 120_000
    for (let arrivesAt = firstRoundMs; arrivesAt < endMs; arrivesAt += 7_013)
      simulation.add({ ...work, tenant: 'victim', order: arrivesAt, arrivesAt, takesMs: 100 })
    simulation.checkEvery(checkMs, endMs)
    const waits: number[] = []
    simulation.run(() => {
      for (const [{ tenant, arrivesAt }, { startedAt }] of simulation.running)
        if (tenant === 'victim' && startedAt === simulation.now) waits.push(startedAt - arrivesAt)
    }, endMs)
    expect(waits.length).toBeGreaterThanOrEqual(17)
    expect(Math.max(...waits)).toBeLessThanOrEqual(leadMsMax + checkMs + endsMs)
    // The longest-running task is never preempted, so there is progress.
    expect(simulation.finished).toBeGreaterThanOrEqual(waits.length + 11)
  })

  test('whatever work arrives, what has run the longest keeps its slot, and everything is finished', () => {
    fc.assert(
      fc.property(anyLoad.works, anyLoad.capacity, (anyWorks, capacity) => {
        const simulation = new Simulation(capacity, leadMsMax)
        const works = anyWorks.map((work, order) => ({ ...work, order, weight: 1, priority: 'normal' as const }))
        for (const work of works) simulation.add(work)
        simulation.checkEvery(checkMs, 20_000)
        simulation.run(() => {
          expect(simulation.running.size).toBeLessThanOrEqual(capacity)
          if (simulation.justPreempted.length === 0) return
          expect([...simulation.running.values()].some(({ isPreempted }) => !isPreempted)).toBe(true)
        })
        expect(simulation.finished).toBe(works.length)
      }),
      { numRuns },
    )
  })
})
