/**
 * Tries what copies need of a store: what it has answered is there, and of several puts of one name one is taken.
 *
 * Owns: what is tried, in which order and for how long, and the removal of what was written. Does not own: each step (store-steps.ts), and what
 * follows from a finding.
 * Law: it writes under new names alone, and removes them, also if it fails or is stopped. A store that does not answer is a finding: each step
 * has a bound.
 */
import type { Clock } from '#lib/clock.ts'
import { countNoun } from '#lib/count-noun.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Random } from '#lib/random.ts'
import { settlesBefore } from '#lib/settles-before.ts'
import { UserError } from '#lib/user-error.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { type Outcome, type SeenStore, type Step, type StepKind, stepsOf } from './store-steps.ts'

/** `rounds`: how often the step was tried. */
export type StoreFinding = {
  readonly step: string
  readonly kind: StepKind
  readonly problem: string | null
  /** Whether the problem kept the step from being tried: it may hold. */
  readonly isUnknown: boolean
  /** Something that is not wrong, and worth knowing. */
  readonly note: string | null
  readonly rounds: number
}

export type StoreCheckOptions = {
  readonly store: ObjectStore
  /** Where it may write, with a slash at its end, or empty. */
  readonly folder: string
  readonly random: Random
  readonly clock: Clock
  /** Ends the check, with the requests in flight. */
  readonly signal: AbortSignal
  /** They put one name at once. None: that is not tried. */
  readonly racers?: readonly SeenStore[]
  readonly thorough?: ThoroughCheck
}

/** Repeats each step, looks at the store from other processes, and tries what copies do not need. */
export type ThoroughCheck = {
  /** The same store as another process sees it. */
  readonly other: SeenStore
  /** Rounds of each step, at most. */
  readonly rounds: number
  /** Ends the check once the round has ended: requests in flight go on, so that what they put can be removed. */
  readonly stopping: AbortSignal
  readonly onStep: (done: number, total: number, step: string) => void
}

/** A step is repeated for that long. */
const repeatMsMax = 10_000
/** A step is given up after that. */
const stepMsMax = 30_000
const cleanUpMsMax = 30_000
/** A store that is busy may refuse some removals. */
const cleanUpAttempts = 5

/** Throws if the store takes no put at all. */
export async function checkCopyStore(options: StoreCheckOptions): Promise<readonly StoreFinding[]> {
  const check = new StoreCheck(options)
  const findings = await check.run().catch(async (error: unknown) => {
    const [left] = await check.cleanUp()
    const isStopped = options.thorough?.stopping.aborted === true
    throw left !== undefined && isStopped ? new UserError(`${errorMessage(error)}: ${left.problem}`) : error
  })
  return [...findings, ...(await check.cleanUp())]
}

class StoreCheck {
  readonly #options: StoreCheckOptions
  readonly #prefix: string
  #names = 0

  constructor(options: StoreCheckOptions) {
    this.#options = options
    this.#prefix = `${options.folder}check-${options.random.bytes(8).toString('hex')}-`
  }

  async run(): Promise<readonly StoreFinding[]> {
    const { store, racers = [], thorough } = this.#options
    const steps = stepsOf(store, { hasRacers: racers.length > 0, isThorough: thorough !== undefined })
    const findings: StoreFinding[] = []
    for (const [index, step] of steps.entries()) {
      thorough?.onStep(index, steps.length, step.name)
      findings.push(await this.#try(step, index === 0))
    }
    thorough?.onStep(steps.length, steps.length, '')
    return findings
  }

  /** Removes all names, whatever a listing says. Returns a finding if some are left. */
  async cleanUp(): Promise<readonly StoreFinding[]> {
    const { store, clock } = this.#options
    const signal = clock.timeout(cleanUpMsMax)
    const names = Array.from({ length: this.#names }, (_, number) => this.#nameOf(number))
    const left = new Set(names)
    const remove = async (name: string) => {
      await store.remove(name, signal)
      left.delete(name)
    }
    for (let attempt = 0; attempt < cleanUpAttempts && left.size > 0 && !signal.aborted; attempt += 1)
      await settlesBefore(Promise.allSettled([...left].map(remove)), signal)
    if (left.size === 0) return []
    const problem = `up to ${countNoun(left.size, 'object')} ${this.#prefix}… may be left`
    return [{ step: 'all that was written is removed', kind: 'left', problem, isUnknown: false, note: null, rounds: 1 }]
  }

  #nameOf(number: number): string {
    return `${this.#prefix}${String(number).padStart(6, '0')}`
  }

  /** `isFirst`: its error is that of the check. */
  async #try({ name: step, kind, isRepeated, run }: Step, isFirst: boolean): Promise<StoreFinding> {
    const { clock, signal, thorough } = this.#options
    const startedMs = clock.monotonic()
    const bound = clock.timeout(stepMsMax)
    const ended = AbortSignal.any([signal, bound])
    const total = isRepeated ? (thorough?.rounds ?? 1) : 1
    let outcome: Outcome = {}
    let rounds = 0
    try {
      while (rounds < total && (rounds === 0 || clock.monotonic() - startedMs < repeatMsMax)) {
        thorough?.stopping.throwIfAborted()
        const { note, ...found } = await this.#bounded(run, ended)
        outcome = { note: note ?? outcome.note, ...found }
        if (found.problem !== undefined) break
        rounds += 1
      }
    } catch (error) {
      signal.throwIfAborted()
      thorough?.stopping.throwIfAborted()
      const late = new Error(`the store did not answer within ${stepMsMax / 1_000} s`)
      if (isFirst) throw bound.aborted ? late : error
      outcome = { problem: errorMessage(bound.aborted ? late : error), isUnknown: !isRefusal(error) }
    }
    const { problem = null, isUnknown = false, note = null } = outcome
    return { step, kind, problem, isUnknown, note, rounds }
  }

  /** Some requests to a directory cannot be aborted. */
  async #bounded(run: Step['run'], signal: AbortSignal): Promise<Outcome> {
    const { store, clock, racers = [], thorough } = this.#options
    const newName = () => {
      this.#names += 1
      return this.#nameOf(this.#names - 1)
    }
    const work = run({ store, other: thorough?.other ?? store, racers, prefix: this.#prefix, newName, clock, signal })
    if (!(await settlesBefore(work, signal))) throw signal.reason
    return await work
  }
}

/** Whether the store never does this. Other errors may pass, or be those of the key. */
function isRefusal(error: unknown): boolean {
  return error instanceof ObjectStoreError && (error.reason === 'condition_refused' || error.reason === 'refused')
}
