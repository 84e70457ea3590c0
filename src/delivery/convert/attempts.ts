/**
 * Repeats a conversion until its process replies.
 *
 * Owns: the time limits of each step and of all steps, and which view is to blame if the process is killed or dies. Does not own: the tasks (conversions.ts).
 * Law: a view is to blame only if the process worked on that view alone: at its time limit, or if it died twice. Then the view fails, and the
 * segment is converted again without it. A process that is killed from outside, as by the kernel for memory, proves nothing.
 * A conversion ends: once its views have used their time together, those that are left fail. Work on a view that is settled is not repeated.
 */
import { readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import type { BoundView } from '#model/snapshot.ts'
import { buildLimits } from '#records/limits.ts'
import { deliveryLimits } from '../segments/limits.ts'
import type { BuiltView, ViewPlan, ViewVerdict } from './build/build-views.ts'
import { ConversionCrashed } from './build/failures.ts'
import { TransientError } from './build/transient-error.ts'
import type { ConversionPool } from './conversion-pool.ts'
import { type Built, toError } from './reply.ts'
import type { ConvertReply, ConvertTask, Step } from './worker/protocol.ts'
import type { WorkerAccess } from './worker-access.ts'

export type Attempts = {
  readonly pool: ConversionPool
  readonly access: WorkerAccess
  /** The files that the process reads. */
  readonly inputs?: readonly string[]
  /** Where the files are written. */
  readonly directory: string
  readonly views: readonly BoundView[]
  /** Whether to build the views one by one from the start. */
  readonly isApart: boolean
  /** Positions of views that are built after the others. */
  readonly last?: readonly number[]
  readonly viewTimeoutMs: number
  /** For all views, one by one. All at once may take as long before that. */
  readonly viewsTimeoutMs: number
  /** Extra time after the limit of a step, in which a statement can end by itself. */
  readonly killAfterMs: number
  readonly taskOf: (plan: ViewPlan) => ConvertTask
  /** Called when a view is to blame. Throws if it must not be left out. */
  readonly onVerdict: (verdict: ViewVerdict) => void
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Views that are settled, and the time that is left for the others. */
type Progress = { readonly built: BuiltView[]; readonly failed: ViewVerdict[]; leftMs: number }

/** How an attempt ended without a reply, and in which step. `exited` is undefined if the process was killed at the limit of the step. */
type Broken = { readonly exited: string | undefined; readonly step: Step | undefined }

/** Throws what the process replies, ConversionCrashed, a transient error, what `onVerdict` throws, or the signal's reason. */
export async function convertRepeatedly(attempts: Attempts): Promise<Built> {
  const { access, directory, views, last, onVerdict } = attempts
  const died = new Set<number>()
  const progress: Progress = { built: [], failed: [], leftMs: attempts.viewsTimeoutMs }
  for (let { isApart } = attempts; ; isApart = true) {
    const { built, failed } = progress
    const end = await attempt(attempts, { isApart, last, built, failed }, progress)
    if ('failure' in end) throw toError(end.failure, views, access)
    if ('files' in end) {
      const names = end.files.map(({ name }) => name)
      await access.take(directory, names)
      return end
    }
    for (const verdict of verdictsOn(end, died, attempts, progress)) {
      onVerdict(verdict)
      progress.failed.push(verdict)
    }
    await removeOthers(directory, progress.built)
  }
}

/** Removes what does not belong to a view that was built. */
async function removeOthers(directory: string, built: readonly BuiltView[]): Promise<void> {
  const kept = new Set(built.flatMap(({ files }) => files.map(({ path }) => basename(path))))
  for (const name of await readdir(directory))
    if (!kept.has(name)) await rm(join(directory, name), { recursive: true, force: true })
}

async function attempt(attempts: Attempts, plan: ViewPlan, progress: Progress): Promise<ConvertReply | Broken> {
  const { pool, access, killAfterMs, taskOf, clock, signal } = attempts
  let step: Step | undefined
  let startedAt = 0
  const endStep = (): void => {
    const [view, ...others] = step?.views ?? []
    // If this process was suspended meanwhile, that must not use up the time of all views.
    if (view !== undefined && others.length === 0 && step?.isTrial !== true)
      progress.leftMs -= Math.min(clock.monotonic() - startedAt, limitOf(view, attempts))
  }
  const onReport = (report: Step): number => {
    endStep()
    step = report
    startedAt = clock.monotonic()
    const { settled } = report
    if (settled !== undefined && 'built' in settled) progress.built.push(settled.built)
    else if (settled !== undefined) progress.failed.push(settled.failed)
    return Math.max(0, limitOfStep(report, attempts, progress) + killAfterMs)
  }
  const options = { timeoutMs: deliveryLimits.conversionStartMs, onReport, signal }
  const end = await access.during(attempts, () => pool.run(taskOf(plan), options))
  if ('reply' in end) return end.reply
  endStep()
  return { exited: 'exited' in end ? end.exited : undefined, step }
}

function limitOfStep({ views }: Step, attempts: Attempts, { leftMs }: Progress): number {
  const [first, ...others] = views
  if (first === undefined) return buildLimits.statementTimeoutMs
  if (others.length === 0) return Math.min(leftMs, limitOf(first, attempts))
  return views.reduce((sum, view) => Math.min(attempts.viewsTimeoutMs, sum + limitOf(view, attempts)), 0)
}

function limitOf(position: number, { views, viewTimeoutMs }: Attempts): number {
  const view = views[position]
  return view !== undefined && isDetached(view) ? viewTimeoutMs * deliveryLimits.detachedViewTimeoutFactor : viewTimeoutMs
}

/** Returns the views that the process worked on when it ended. Throws if no view can be to blame. */
function viewsOf({ exited, step }: Broken): readonly [number, ...(readonly number[])] {
  if (step === undefined) throw new TransientError(`the conversion process ${exited ?? 'did not start in time'}`)
  const [first, ...others] = step.views
  if (others.length === 0 && isFromOutside(exited))
    throw new TransientError(`the conversion process was ${exited}: is memory short?`)
  if (first !== undefined) return [first, ...others]
  if (exited === undefined) throw new TransientError('a step of the conversion took too long: is the disk slow?')
  throw new ConversionCrashed(`the conversion process ended: ${exited}`)
}

/** A process that exceeds the memory or file size that it may use ends by one of these. */
const limitSignals = ['SIGABRT', 'SIGTRAP', 'SIGXFSZ']

/** Whether a signal ended the process that neither a limit nor a crash sends. The kernel sends SIGKILL if the machine has no memory left. */
function isFromOutside(exited: string | undefined): exited is string {
  return exited !== undefined && /^killed by SIG(?:KILL|TERM|INT|HUP|QUIT)$/.test(exited)
}

/** Returns who is to blame for the end of an attempt. Throws if it cannot be a view. */
function verdictsOn(end: Broken, died: Set<number>, attempts: Attempts, progress: Progress): readonly ViewVerdict[] {
  const { exited } = end
  const [view, ...others] = viewsOf(end)
  if (others.length > 0) return []
  if (progress.leftMs <= 0) return verdictsOnAll(view, attempts, progress)
  // A process can also die for another reason of the node.
  const isProven = exited === undefined || died.has(view)
  died.add(view)
  return isProven ? [verdictOn(view, exited, limitOf(view, attempts))] : []
}

function verdictsOnAll(current: number, attempts: Attempts, { built, failed }: Progress): readonly ViewVerdict[] {
  const settled = new Set([...built, ...failed].map(({ view }) => view))
  const left = new Set([current, ...attempts.views.keys()]).difference(settled)
  const reason = `the views of the segment took longer than ${seconds(attempts.viewsTimeoutMs)} together, and this one was not built by then`
  return [...left].map((view) => ({ view, reason, isTooExpensive: true }))
}

function verdictOn(view: number, exited: string | undefined, limitMs: number): ViewVerdict {
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
