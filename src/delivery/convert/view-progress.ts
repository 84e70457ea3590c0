/**
 * Progress of a build that runs in one process after the other: which views are settled, how much time is left, and which view is to blame if a
 * process is killed or dies.
 *
 * Owns: the time limit of each step and of all steps, and the blame. Does not own: the processes (conversion-runner.ts), what follows (policy.ts).
 * Law: a view is to blame only if the process worked on that view alone: at its time limit, or if it died twice. Then the view fails, and the
 * rest is built without it. A process that is killed from outside, as by the kernel for memory, proves nothing. A build ends: once its views
 * have used their time together, those that are left fail. Work on a view that is settled is not repeated.
 */
import type { BoundView } from '#model/snapshot.ts'
import { buildLimits } from '#records/limits.ts'
import type { BuiltView, ViewBlame, ViewPlan } from './build/build-views.ts'
import { ConversionCrashed } from './build/failures.ts'
import { TransientError } from './build/transient-error.ts'
import { conversionLimits } from './limits.ts'
import type { Step } from './worker/protocol.ts'

export type ViewProgressOptions = {
  readonly views: readonly BoundView[]
  /** Whether to build the views one by one from the start. */
  readonly isApart: boolean
  /** Positions of views that are built after the others. */
  readonly last?: readonly number[]
  readonly viewTimeoutMs: number
  /** For all views, one by one. All at once may take as long before that. */
  readonly viewsTimeoutMs: number
}

export class ViewProgress {
  readonly #options: ViewProgressOptions
  readonly #built: BuiltView[] = []
  readonly #failed: ViewBlame[] = []
  /** Views during which a process died. */
  readonly #died = new Set<number>()
  #isApart: boolean
  #leftMs: number
  #step: Step | undefined
  #startedAt = 0

  constructor(options: ViewProgressOptions) {
    this.#options = options
    this.#isApart = options.isApart
    this.#leftMs = options.viewsTimeoutMs
  }

  /** Plan for the next process. */
  get plan(): ViewPlan {
    return { isApart: this.#isApart, last: this.#options.last, built: this.#built, failed: this.#failed }
  }

  get built(): readonly BuiltView[] {
    return this.#built
  }

  /** A process begins a step, at a time of the monotonic clock. Returns how long the step may take. */
  begin(step: Step, now: number): number {
    this.#endStep(now)
    this.#step = step
    this.#startedAt = now
    const { settled } = step
    if (settled !== undefined && 'built' in settled) this.#built.push(settled.built)
    else if (settled !== undefined) this.#failed.push(settled.failed)
    return this.#limitOfStep(step)
  }

  /**
   * The process ended before it replied. `exited` says how, and is undefined if it was killed at the limit of its step. Returns the views that
   * fail for that, and the next process does without them. Throws ConversionCrashed or a transient error if no view can be to blame.
   */
  end(exited: string | undefined, now: number): readonly ViewBlame[] {
    this.#endStep(now)
    const step = this.#step
    this.#step = undefined
    const blames = this.#blame(exited, step)
    this.#isApart = true
    this.#failed.push(...blames)
    return blames
  }

  #endStep(now: number): void {
    const [view, ...others] = this.#step?.views ?? []
    // If this process was suspended meanwhile, that must not use up the time of all views.
    if (view !== undefined && others.length === 0 && this.#step?.isTrial !== true)
      this.#leftMs -= Math.min(now - this.#startedAt, this.#limitOf(view))
  }

  #limitOfStep({ views }: Step): number {
    const [first, ...others] = views
    if (first === undefined) return buildLimits.statementTimeoutMs
    if (others.length === 0) return Math.min(this.#leftMs, this.#limitOf(first))
    return Math.min(
      this.#options.viewsTimeoutMs,
      views.reduce((sum, view) => sum + this.#limitOf(view), 0),
    )
  }

  #limitOf(position: number): number {
    const { views, viewTimeoutMs } = this.#options
    const view = views[position]
    return view !== undefined && isDetached(view) ? viewTimeoutMs * conversionLimits.detachedViewTimeoutFactor : viewTimeoutMs
  }

  #blame(exited: string | undefined, step: Step | undefined): readonly ViewBlame[] {
    if (step === undefined) throw new TransientError(`the conversion process ${exited ?? 'did not start in time'}`)
    const [view, ...others] = step.views
    if (others.length > 0) return []
    if (isFromOutside(exited)) throw new TransientError(`the conversion process was ${exited}: is memory short?`)
    if (view === undefined && exited === undefined)
      throw new TransientError('a step of the conversion took too long: is the disk slow?')
    if (view === undefined) throw new ConversionCrashed(`the conversion process ended: ${exited}`)
    if (this.#leftMs <= 0) return this.#blameAll(view)
    // A process can also die for another reason of the node.
    const isProven = exited === undefined || this.#died.has(view)
    this.#died.add(view)
    return isProven ? [blameOn(view, exited, this.#limitOf(view))] : []
  }

  #blameAll(current: number): readonly ViewBlame[] {
    const { views, viewsTimeoutMs } = this.#options
    const settled = new Set([...this.#built, ...this.#failed].map(({ view }) => view))
    const left = new Set([current, ...views.keys()]).difference(settled)
    const reason = `the views of the segment took longer than ${seconds(viewsTimeoutMs)} together, and this one was not built by then`
    return [...left].map((view) => ({ view, reason, isTooExpensive: true }))
  }
}

/** A process that exceeds the memory or file size that it may use ends by one of these. */
const limitSignals = ['SIGABRT', 'SIGTRAP', 'SIGXFSZ']

/** Whether a signal ended the process that neither a limit nor a crash sends. The kernel sends SIGKILL if the machine has no memory left. */
function isFromOutside(exited: string | undefined): exited is string {
  return exited !== undefined && /^killed by SIG(?:KILL|TERM|INT|HUP|QUIT)$/.test(exited)
}

function blameOn(view: number, exited: string | undefined, limitMs: number): ViewBlame {
  if (exited === undefined) return { view, reason: `its extraction took longer than ${seconds(limitMs)}`, isTooExpensive: true }
  const isTooExpensive = limitSignals.some((signal) => exited.endsWith(signal))
  const reason = isTooExpensive
    ? `its extraction exceeded the memory or file size of a conversion (${exited})`
    : `its extraction crashed (${exited})`
  return { view, reason, isTooExpensive }
}

function seconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`
}

export function isDetached({ deactivated_at }: BoundView): boolean {
  return deactivated_at !== null
}
