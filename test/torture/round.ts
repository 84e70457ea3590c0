/** One round: starts an Inlet and its clients, applies the plan, heals everything, waits until all is quiet, and judges. */

import { noFaults } from './child/steering.ts'
import { inject } from './faults/inject.ts'
import { resetSettings } from './faults/settings.ts'
import { type Judgement, judge } from './law.ts'
import { findUnrest, observe } from './observe.ts'
import { describeFault, type FaultKind, type Plan } from './plan.ts'
import { processNames } from './processes.ts'
import { Random } from './random.ts'
import { RecoveryWatch } from './recovery.ts'
import { Rig } from './rig.ts'
import { seconds } from './text.ts'

/** Bounds of the wait for what was delayed: longer than every back-off of the product. */
const quietMsMax = 90_000
const pollMs = 250

export type RoundResult = Judgement & {
  readonly plan: Plan
  readonly acknowledgedRecords: number
  readonly faults: ReadonlyMap<FaultKind, number>
  readonly slowestRecovery: ReadonlyMap<FaultKind, number>
  readonly quietMs: number
  readonly failedStarts: number
}

/** Activity of a round, for the progress line. */
export type RoundState = {
  phase: string
  rig: Rig | undefined
  readonly active: Set<string>
  readonly faults: Map<FaultKind, number>
}

export async function runRound(plan: Plan, directory: string, state: RoundState): Promise<RoundResult> {
  const random = new Random(plan.seed ^ plan.round)
  state.phase = 'starting'
  await using rig = await Rig.start(directory, random)
  state.rig = rig
  const watch = new RecoveryWatch(rig)
  const before = new Map(state.faults)
  state.phase = 'faults'
  await applyPlan(plan, rig, watch, state)
  state.phase = 'healing'
  await healEverything(rig)
  const quietFrom = performance.now()
  state.phase = 'waiting for quiet'
  const unrest = await waitForQuiet(rig, state)
  watch.stop()
  state.phase = 'checking'
  const troubles = unrest === undefined ? [] : [`not quiet after ${seconds(quietMsMax)}: ${unrest}`]
  const judgement = judge(await observe(rig, troubles))
  state.active.clear()
  state.rig = undefined
  return {
    ...judgement,
    plan,
    acknowledgedRecords: rig.ledger.acknowledgedRecords,
    faults: new Map([...state.faults].map(([kind, number]) => [kind, number - (before.get(kind) ?? 0)])),
    slowestRecovery: watch.slowest,
    quietMs: performance.now() - quietFrom,
    failedStarts: rig.processes.failedStarts,
  }
}

/** Begins each fault at its time and ends it at its time, one action after the other. */
async function applyPlan(plan: Plan, rig: Rig, watch: RecoveryWatch, state: RoundState): Promise<void> {
  type Action = { readonly atMs: number; readonly act: () => Promise<void> }
  const startedAt = performance.now()
  let actions: readonly Action[] = plan.steps.map(({ atMs, fault }) => ({
    atMs,
    async act() {
      const text = describeFault(fault)
      rig.note(text)
      state.faults.set(fault.kind, (state.faults.get(fault.kind) ?? 0) + 1)
      state.active.add(text)
      const heal = await inject(fault, rig)
      const end = async () => {
        await heal?.()
        state.active.delete(text)
        rig.note(`healed: ${text}`)
        watch.begin(fault.kind)
      }
      if (heal === undefined || !('forMs' in fault)) await end()
      else actions = [...actions, { atMs: performance.now() - startedAt + fault.forMs, act: end }]
    },
  }))
  while (actions.length > 0) {
    const next = actions.reduce((first, action) => (action.atMs < first.atMs ? action : first))
    actions = actions.filter((action) => action !== next)
    const waitMs = startedAt + next.atMs - performance.now()
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
    await next.act()
  }
}

/** Ends what is still wrong, lets the clients send for another moment, and then stops them. */
async function healEverything(rig: Rig): Promise<void> {
  rig.processes.steer(processNames, () => noFaults)
  rig.processes.resume(processNames)
  await rig.backgroundWork()
  rig.processes.start(processNames)
  await resetSettings(rig)
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  await rig.stopSending()
}

/** Returns what is still not quiet at the end of the time. */
async function waitForQuiet(rig: Rig, state: RoundState): Promise<string | undefined> {
  const deadline = performance.now() + quietMsMax
  for (;;) {
    const unrest = await findUnrest(rig).catch(String)
    if (unrest === undefined || performance.now() > deadline) return unrest
    state.phase = `waiting: ${unrest}`
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
