/**
 * Makes the changes of a plan.
 *
 * Law: a change starts once everything it needs is done, so that after a failure the rest can be made by running it again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '#client/client.ts'
import { InletError } from '#client/errors.ts'
import type { Clock } from '#lib/clock.ts'
import { inParallel } from '#lib/in-parallel.ts'
import { UserError } from '#lib/user-error.ts'
import { type Applying, type Change, Ids } from './kinds/change.ts'
import { setupLimits } from './kinds/limits.ts'
import type { Plan } from './plan.ts'

export type Outcome = {
  readonly change: Change
  readonly status: 'done' | 'failed' | 'skipped'
  /** Why it failed. */
  readonly message?: string
  /** Warnings of the API. */
  readonly warnings: readonly string[]
}

export type ApplyOptions = Pick<Applying, 'client' | 'keepSecret'> & {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Called for each change that was tried, with how many there were. */
  readonly onDone: (outcome: Outcome, tried: number) => void
  /** Called once if deletions wait for an endpoint that still delivers. */
  readonly onWait: (endpoint: string) => void
}

/** Changes of one stage need nothing of each other. After a failure no stage follows. */
export async function applyChanges(
  plan: Plan,
  { client, clock, keepSecret, signal, onDone, onWait }: ApplyOptions,
): Promise<readonly Outcome[]> {
  const applying = { client, keepSecret, ids: new Ids(plan.account) }
  const outcomes = new Map<Change, Outcome>()
  const stopping = new AbortController()
  const stopped = AbortSignal.any([signal, stopping.signal])
  for (const stage of stagesOf(plan.changes)) {
    if (stopped.aborted) break
    const blocked = await waitForDrains(client, plan, stage, { clock, onWait, signal: stopped })
    await inParallel(
      setupLimits.parallel,
      stage,
      async (change) => {
        const outcome = await outcomeOf(change, applying, blocked)
        outcomes.set(change, outcome)
        onDone(outcome, outcomes.size)
        if (outcome.status === 'failed') stopping.abort()
      },
      stopped,
    )
  }
  return plan.changes.map((change) => outcomes.get(change) ?? { change, status: 'skipped', warnings: [] })
}

async function outcomeOf(change: Change, applying: Omit<Applying, 'warn'>, blocked: string | undefined): Promise<Outcome> {
  const warnings: string[] = []
  try {
    if (blocked !== undefined) throw new UserError(blocked)
    await change.run({ ...applying, warn: (warning) => warnings.push(warning) })
    return { change, status: 'done', warnings }
  } catch (error) {
    if (!(error instanceof InletError || error instanceof UserError)) throw error
    return { change, status: 'failed', message: error.message, warnings }
  }
}

/** Changes of a plan are in order, so those of one kind and direction follow each other. */
function stagesOf(changes: readonly Change[]): readonly (readonly Change[])[] {
  const stages = Map.groupBy(changes, ({ kind, action }) => `${kind} ${action === 'delete'}`)
  return [...stages.values()]
}

/**
 * Endpoints that are being deleted need their views and destinations until all their data is delivered. Returns why these cannot be deleted yet,
 * if it takes long.
 */
async function waitForDrains(
  client: Client,
  { account }: Plan,
  stage: readonly Change[],
  { clock, signal, onWait }: Pick<ApplyOptions, 'clock' | 'signal' | 'onWait'>,
): Promise<string | undefined> {
  let isReported = false
  const [first] = stage
  if (first?.action !== 'delete' || (first.kind !== 'views' && first.kind !== 'destinations')) return undefined
  const names = new Set(stage.map(({ name }) => name))
  const deadline = clock.monotonic() + setupLimits.drainWaitMs
  for (;;) {
    const draining = await Array.fromAsync(client.listEndpoints({ status: 'draining' }))
    const needing = draining.filter(({ destination_name, id }) =>
      first.kind === 'destinations'
        ? destination_name !== null && names.has(destination_name)
        : [...account.attachments, ...account.drainingAttachments].some(
            ({ endpoint_id, view }) => endpoint_id === id && names.has(view),
          ),
    )
    const [endpoint] = needing
    if (endpoint === undefined) return undefined
    if (signal.aborted || clock.monotonic() >= deadline)
      return `the endpoint ${endpoint.name} is being deleted and still delivers its data${needing.length > 1 ? `, and ${needing.length - 1} more` : ''}`
    if (!isReported) onWait(endpoint.name)
    isReported = true
    await sleep(setupLimits.drainPollMs, undefined, { signal }).catch(() => undefined)
  }
}
