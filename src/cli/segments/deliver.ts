/**
 * `inlet segments deliver`: has the delivery process deliver a log that has no destination of its own.
 *
 * Owns: asking control for the destination, the assignment, and showing progress. Does not own: the delivery itself.
 * Law: the assignment is durable before the wait begins, so the command may be stopped at any time.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { controlOf } from '#config/addresses.ts'
import type { Config } from '#config/config.ts'
import { writeAssignment } from '#delivery/segments/assignments.ts'
import { countNoun } from '#lib/count-noun.ts'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import type { AssignableDestination } from '#model/destination.ts'
import { Id } from '#model/id.ts'
import { ControlClient, ControlError } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { Progress } from '../terminal/progress.ts'
import { formatBytes } from './format.ts'
import { deliveryIsDown, type NodeSegment, readNodeSegments } from './node-segments.ts'
import { readOwners } from './owners.ts'

export type DeliverFlags = { readonly destination: string }

const pollMs = 500

export async function deliverLog(this: CliContext, { destination: id }: DeliverFlags, log: string): Promise<void> {
  if (!Id.safeParse(id).success) throw new UsageError(`--destination: must be the id of a destination, not ${JSON.stringify(id)}`)
  const config = await this.readConfig()
  const waiting = await readWaiting(this, config, log)
  if (waiting.length === 0)
    throw new UserError(`${log}: nothing waits for delivery; list what this node has with: inlet segments`)
  const { endpoint } = (await readOwners(config, systemFiles, createLogger('segments', 'silent')))(log)
  if (endpoint != null && endpoint.destination !== null) {
    throw new UserError(
      `${log}: according to the configuration that this node has, its endpoint delivers to destination ${endpoint.destination.id}; to deliver elsewhere, give the endpoint another destination. If the endpoint is deleted, start ingest or delivery, so that the node learns of it, and repeat the command`,
    )
  }
  const assignment = await fetchDestination(config, id)
  await writeAssignment(systemFiles, config.paths.assignments, log, assignment)
  const { bucket, prefix } = assignment.destination
  this.process.stdout.write(
    `${log}: ${countNoun(waiting.length, 'segment')} (${sizeOf(waiting)}) to bucket ${bucket}, prefix ${prefix === '' ? '(none)' : prefix}\n`,
  )
  await showProgress(this, config, log, waiting.length)
}

async function showProgress(context: CliContext, config: Config, log: string, total: number): Promise<void> {
  const { process } = context
  const progress = new Progress({ output: process.stdout, label: 'delivered', total })
  let printed = ''
  for (;;) {
    const left = await readWaiting(context, config, log)
    const reason = left[0]?.reason ?? ''
    if (reason === deliveryIsDown) {
      process.stdout.write(
        'delivery does not run on this node: the log is delivered once it starts. Watch it with: inlet segments\n',
      )
      return
    }
    progress.show(total - Math.min(total, left.length), `${countNoun(left.length, 'segment')} left`)
    if (left.length === 0) break
    if (reason !== printed) process.stdout.write(`  ${reason}\n`)
    printed = reason
    // Keeps this process alive, unlike a timer of `clock`.
    await wait(pollMs)
  }
  process.stdout.write(
    `everything that could be delivered of ${log} is delivered; what is parked or quarantined stays: inlet segments\n`,
  )
}

async function readWaiting({ clock }: CliContext, config: Config, log: string): Promise<readonly NodeSegment[]> {
  const { segments } = await readNodeSegments(config, { clock, log, logger: createLogger('segments', 'silent') })
  return segments.filter(({ state }) => state === 'open' || state === 'sealed')
}

async function fetchDestination(config: Config, id: string): Promise<AssignableDestination> {
  const credential = await NodeCredential.open(
    await readOrCreateNodeId(config.paths, system),
    config.paths.nodeCredential,
    system,
  )
  const control = await ControlClient.open({ ...system, ...controlOf(config), credential })
  try {
    return await control.fetchDestination(id, new AbortController().signal)
  } catch (error) {
    if (!(error instanceof ControlError)) throw error
    throw new UserError(
      error.status === 404
        ? `--destination: control has no destination ${id} of an account with an endpoint in the region of this node`
        : error.message,
    )
  }
}

function sizeOf(segments: readonly NodeSegment[]): string {
  return formatBytes(segments.reduce((sum, { bytes }) => sum + bytes, 0))
}
