/** `inlet plan`: shows what `inlet apply` would do. */

import { openRemote } from '../remote/remote.ts'
import type { CliContext } from '../terminal/context.ts'
import { printJson } from '../terminal/print-json.ts'
import { compareViews, describeViewsOnData } from './compare-views.ts'
import { colored, describePlan, type Paint, plain, planToJson } from './describe-plan.ts'
import { setupLimits } from './kinds/limits.ts'
import { makePlan, type Plan } from './plan.ts'

export type PlanFlags = {
  readonly file: readonly string[]
  readonly prune: boolean
  readonly json: boolean
  readonly exitCode: boolean
  readonly data: boolean
}

/** With --exit-code, changes are no failure and no success. */
const changesExitCode = 3

export async function plan(this: CliContext, flags: PlanFlags): Promise<void> {
  const { client, plan } = await planOf(this, flags)
  const { stdout } = this.process
  if (!flags.json) stdout.write(describePlan(plan, await paintFor(this)))
  const comparisons = flags.data ? await compareViews(client, plan) : undefined
  if (flags.json) printJson(this, { ...planToJson(plan), ...(comparisons && { comparisons }) })
  else if (comparisons !== undefined) stdout.write(`\n${describeViewsOnData(comparisons)}`)
  if (flags.exitCode && plan.changes.length > 0) this.process.exitCode = changesExitCode
}

export async function planOf(context: CliContext, { file, prune }: Pick<PlanFlags, 'file' | 'prune'>) {
  const environment = await context.readEnvironment()
  const { client, apiKey } = await openRemote(context, { timeoutMs: setupLimits.callTimeoutMs })
  const plan: Plan = await makePlan({ client, apiKey, environment, paths: file, prune })
  return { client, plan }
}

/** Colours are for terminals: https://no-color.org. */
export async function paintFor(context: CliContext): Promise<Paint> {
  const { NO_COLOR: noColor, TERM: terminal } = await context.readEnvironment()
  return context.process.stdout.isTTY === true && !noColor && terminal !== 'dumb' ? colored : plain
}
