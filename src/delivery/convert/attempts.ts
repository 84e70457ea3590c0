/**
 * Repeats a conversion until its process replies.
 *
 * Owns: the time limit of each step, and which view is to blame if the process is killed or dies. Does not own: the tasks (conversions.ts).
 * Law: a view is to blame only if the process worked on that view alone: at its time limit, or if it died twice. Then the view fails, and the
 * segment is converted again without it. A process that is killed from outside, as by the kernel for memory, proves nothing.
 */
import { mkdir, rm } from 'node:fs/promises'
import type { BoundView } from '#model/snapshot.ts'
import { buildLimits } from '#records/limits.ts'
import { deliveryLimits } from '../limits.ts'
import { TransientError } from '../transient-error.ts'
import type { ViewPlan, ViewVerdict } from './build-views.ts'
import type { ConversionPool } from './conversion-pool.ts'
import { ConversionCrashed } from './failures.ts'
import type { ConvertReply, ConvertTask, Step } from './worker/protocol.ts'
import { type Built, toError } from './worker/reply.ts'
import type { WorkerAccess } from './worker-access.ts'

export type Attempts = {
  readonly pool: ConversionPool
  readonly access: WorkerAccess
  /** The file that the process reads. */
  readonly input?: string
  /** Where the files are written. */
  readonly directory: string
  readonly views: readonly BoundView[]
  /** Whether to build the views one by one from the start. */
  readonly isApart: boolean
  readonly viewTimeoutMs: number
  /** Extra time after the limit of a step, in which a statement can end by itself. */
  readonly killAfterMs: number
  readonly taskOf: (plan: ViewPlan) => ConvertTask
  /** Called when a view is to blame. Throws if it must not be left out. */
  readonly onVerdict: (verdict: ViewVerdict) => void
  readonly signal: AbortSignal
}

/** How an attempt ended without a reply, and in which step. `exited` is undefined if the process was killed at the limit of the step. */
type Broken = { readonly exited: string | undefined; readonly step: Step | undefined }

/** Throws what the process replies, ConversionCrashed, a transient error, what `onVerdict` throws, or the signal's reason. */
export async function convertRepeatedly(attempts: Attempts): Promise<Built> {
  const { access, directory, views, isApart, onVerdict } = attempts
  const died = new Set<number>()
  let plan: ViewPlan = { isApart, failed: [] }
  for (;;) {
    const end = await attempt(attempts, plan)
    if ('failure' in end) throw toError(end.failure, views, access)
    if ('files' in end) {
      const names = end.files.map(({ name }) => name)
      await access.take(directory, names)
      return end
    }
    const { exited } = end
    const [view, ...others] = viewsOf(end)
    const isAlone = others.length === 0
    // A process can also die for another reason of the node.
    const isProven = isAlone && (exited === undefined || died.has(view))
    const verdict = isProven ? verdictOn(view, exited, limitOf(view, attempts)) : undefined
    if (verdict !== undefined) onVerdict(verdict)
    if (isAlone) died.add(view)
    plan = { isApart: true, failed: [...plan.failed, ...(verdict === undefined ? [] : [verdict])] }
    await rm(directory, { recursive: true, force: true })
    await mkdir(directory)
  }
}

async function attempt(attempts: Attempts, plan: ViewPlan): Promise<ConvertReply | Broken> {
  const { pool, access, killAfterMs, taskOf, signal } = attempts
  let step: Step | undefined
  const onReport = (report: Step): number => {
    step = report
    return limitOfStep(report, attempts) + killAfterMs
  }
  const options = { timeoutMs: deliveryLimits.conversionStartMs, onReport, signal }
  const end = await access.during(attempts, () => pool.run(taskOf(plan), options))
  if ('reply' in end) return end.reply
  return { exited: 'exited' in end ? end.exited : undefined, step }
}

function limitOfStep({ views }: Step, attempts: Attempts): number {
  if (views.length === 0) return buildLimits.statementTimeoutMs
  return views.reduce((sum, view) => sum + limitOf(view, attempts), 0)
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

function verdictOn(view: number, exited: string | undefined, limitMs: number): ViewVerdict {
  if (exited === undefined)
    return { view, reason: `its extraction took longer than ${Math.round(limitMs / 100) / 10} s`, isTooExpensive: true }
  const isTooExpensive = limitSignals.some((signal) => exited.endsWith(signal))
  const reason = isTooExpensive
    ? `its extraction exceeded the memory or file size of a conversion (${exited})`
    : `its extraction crashed (${exited})`
  return { view, reason, isTooExpensive }
}

export function isDetached({ deactivated_at }: BoundView): boolean {
  return deactivated_at !== null
}
