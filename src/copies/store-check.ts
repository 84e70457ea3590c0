/**
 * Tries what copies need of a store: what it has answered is there, and of several puts of one name one is taken.
 *
 * Owns: what is tried, in which order and for how long, and the removal of what was written. Does not own: each step (store-steps.ts), and what
 * follows from a finding.
 * Law: it writes under new names alone, and removes them, also if it fails or is stopped. A store that does not answer is a finding: each step
 * has a bound.
 */
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Random } from '#lib/random.ts'
import { settlesBefore } from '#lib/settles-before.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { type Outcome, type SeenStore, type Step, type StepKind, stepsOf } from './store-steps.ts'

/** `rounds`: how often the step was tried. */
export type StoreFinding = {
  readonly step: string
  readonly kind: StepKind
  readonly problem: string | null
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

/** Throws if the store takes no put at all. */
export async function checkCopyStore(options: StoreCheckOptions): Promise<readonly StoreFinding[]> {
  const check = new StoreCheck(options)
  const findings = await check.run().catch(async (error: unknown) => {
    await check.cleanUp()
    throw error
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
    let removed = 0
    const remove = async (name: string) => {
      await store.remove(name, signal)
      removed += 1
    }
    await settlesBefore(Promise.allSettled(names.map(remove)), signal)
    if (removed === names.length) return []
    const problem = `${names.length - removed} objects ${this.#prefix}… may be left: remove them`
    return [{ step: 'all that was written is removed', kind: 'advice', problem, note: null, rounds: 1 }]
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
        const { note, problem } = await this.#bounded(run, ended)
        outcome = { note: note ?? outcome.note, problem }
        if (problem !== undefined) break
        rounds += 1
      }
    } catch (error) {
      signal.throwIfAborted()
      thorough?.stopping.throwIfAborted()
      const late = new Error(`the store did not answer within ${stepMsMax / 1_000} s`)
      if (isFirst) throw bound.aborted ? late : error
      outcome = { problem: errorMessage(bound.aborted ? late : error) }
    }
    return { step, kind, problem: outcome.problem ?? null, note: outcome.note ?? null, rounds }
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
