/**
 * Stops canaries that do worse than the version beside them.
 *
 * Owns: when canaries are judged. Does not own: the rule (model/canary-rule.ts), the figures, which commits bring (store/).
 * Law: a canary is judged by figures that are in the database, so the control process that leads next continues. One that cannot be judged keeps
 * none of the others from it.
 */
import type { Registry } from 'prom-client'
import { errorMessage } from '#lib/error-message.ts'
import { observableMetrics } from '#lib/metrics.ts'
import { Periodic } from '#lib/periodic.ts'
import { dayMs, minuteMs } from '#lib/time-units.ts'
import { judgeByRule } from '#model/canary-rule.ts'
import { type Canary, findVersionBeside, listCanaries, readFigures, stopCanary, type Version } from '#store/endpoints/canaries.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits } from '../limits.ts'

export type CanariesOptions = ControlContext & { readonly registry: Registry }

export function createCanaryStops({ registry, ...options }: CanariesOptions): Periodic {
  const { leadership, clock, logger } = options
  let stopped = 0
  observableMetrics(registry).counter(
    'inlet_canaries_stopped_total',
    'canaries that this process stopped by their rule',
    () => stopped,
  )
  return new Periodic({
    name: 'canaries',
    intervalMs: controlLimits.canaryCheckMs,
    run: leadership.whileLeading(async (signal) => {
      await stopBrokenCanaries(options, signal, () => {
        stopped += 1
      })
    }),
    failure: 'check of canaries failed',
    clock,
    logger,
  })
}

export async function stopBrokenCanaries(
  { store: { db }, applyChange, clock, logger }: Omit<ControlContext, 'leadership'>,
  signal: AbortSignal,
  onStopped: () => void = () => undefined,
): Promise<void> {
  for (let after = ''; ; ) {
    const canaries = await listCanaries(db, clock.now(), after, controlLimits.canariesAtOnce)
    for (const canary of canaries) {
      if (signal.aborted) return
      try {
        await judge(canary)
      } catch (error) {
        logger.warn({ binding_id: canary.id, reason: errorMessage(error) }, 'canary not judged')
      }
    }
    const last = canaries.at(-1)
    if (last === undefined || canaries.length < controlLimits.canariesAtOnce) return
    after = last.id
  }

  async function judge(canary: Canary): Promise<void> {
    const other = await findVersionBeside(db, canary)
    if (other === undefined) return
    const now = clock.now()
    const reason = await findReason(canary, other, now)
    if (reason === undefined || !(await applyChange((tx) => stopCanary(tx, canary, reason, now)))) return
    onStopped()
    const { id: binding_id, endpoint_id, view_name: view, version } = canary
    logger.warn({ binding_id, endpoint_id, view, version, reason }, 'canary stopped')
  }

  /** Judges all since the canary began, of the last day at most, and then its window, which a good beginning does not outweigh. */
  async function findReason(canary: Canary, other: Version, now: number): Promise<string | undefined> {
    const { rule } = canary
    const since = Math.max(canary.since, now - dayMs)
    const figuresOf = async (from: number) =>
      [await readFigures(db, canary, canary, from), await readFigures(db, canary, other, from)] as const
    const reason = judgeByRule(rule, ...(await figuresOf(since)))
    const windowMs = (rule.window_minutes ?? 0) * minuteMs
    if (reason !== undefined || windowMs === 0 || now - windowMs <= since) return reason
    const broken = judgeByRule(rule, ...(await figuresOf(now - windowMs)))
    return broken === undefined ? undefined : `in the last ${rule.window_minutes} minutes, ${broken}`
  }
}
