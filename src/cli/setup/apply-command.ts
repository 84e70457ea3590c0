/** `inlet apply`: shows a plan, asks, and makes the account what the files say. */
import { UserError } from '#lib/user-error.ts'
import { confirm } from '../resources/confirm.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { printJson } from '../terminal/print-json.ts'
import { applyChanges, type Outcome } from './apply.ts'
import { changeToJson, describePlan } from './describe-plan.ts'
import { KeyFile } from './key-file.ts'
import type { Change } from './kinds/change.ts'
import { singular } from './kinds/change.ts'
import { printable } from './kinds/problems.ts'
import type { Plan } from './plan.ts'
import { paintFor, planOf } from './plan-command.ts'
import { validateDestinations } from './validate-destinations.ts'

export type ApplyFlags = {
  readonly file: readonly string[]
  readonly prune: boolean
  readonly yes: boolean
  readonly keysTo?: string
  readonly json: boolean
}

export async function apply(this: CliContext, flags: ApplyFlags): Promise<void> {
  const { stdout, stderr } = this.process
  const { client, plan } = await planOf(this, flags)
  if (!flags.json) stdout.write(describePlan(plan, await paintFor(this)))
  assertPossible(plan)
  const keys = plan.changes.filter(({ kind, action }) => kind === 'keys' && action === 'create')
  if (plan.changes.length > 0 && !flags.yes) await confirm(this, 'These changes will be made')
  const keepSecret = await openSecrets(this, flags, keys)
  const report = flags.json ? stderr : stdout
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, stop)
  try {
    const outcomes = await applyChanges(plan, {
      ...{ client, clock: this.clock, keepSecret, signal: stopping.signal },
      onWait: (name) => report.write(`Waiting until the endpoint ${printable(name)} has delivered its data\n`),
      onDone: (outcome, done) => {
        report.write(`[${done}/${plan.changes.length}] ${describeOutcome(outcome)}\n`)
        for (const warning of outcome.warnings) report.write(`  warning: ${printable(warning)}\n`)
      },
    })
    const isComplete = outcomes.every(({ status }) => status === 'done')
    const invalid = isComplete
      ? await validateDestinations(client, plan, stopping.signal, (names) =>
          report.write(`Checking whether ${names.map(printable).join(', ')} can be written to\n`),
        )
      : []
    if (flags.json) printJson(this, { changes: outcomes.map(outcomeToJson), destinations_not_valid: invalid })
    if (!isComplete) throw new UserError(describeFailure(outcomes, stopping.signal.aborted))
    if (!flags.json && plan.changes.length > 0) stdout.write(`\nDone: ${countDone(plan.changes)}.\n`)
    if (invalid.length > 0) throw new UserError(describeInvalid(invalid))
  } finally {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, stop)
  }
}

function assertPossible({ account, setup }: Plan): void {
  if (account.keys === undefined && setup.kinds.has('keys'))
    throw new UserError('the set-up has keys, and the API key of this command has no scope admin: use one that has')
}

/** A secret in the log of CI is none. */
async function openSecrets(context: CliContext, { keysTo, json }: ApplyFlags, keys: readonly Change[]) {
  const { stdout } = context.process
  if (keysTo !== undefined && keys.length > 0) {
    const file = await KeyFile.open(keysTo)
    return (name: string, secret: string) => file.add(name, secret)
  }
  if (keys.length > 0 && (json || stdout.isTTY !== true))
    throw new UsageError(
      `--keys-to FILE must say where the secrets of new keys go, because this output is not a terminal: ${keys.map(({ name }) => name).join(', ')}`,
    )
  return async (name: string, secret: string) => {
    stdout.write(`key ${printable(name)}: ${secret}  (shown only now)\n`)
  }
}

const pasts = { create: 'created', change: 'changed', delete: 'deleted' } as const

function describeOutcome({ change: { action, kind, name }, status, message }: Outcome): string {
  const what = `${singular[kind]} ${printable(name)}`
  return status === 'done' ? `${what}: ${pasts[action]}` : `${what}: not ${pasts[action]}: ${printable(message ?? '')}`
}

function countDone(changes: readonly Change[]): string {
  return (['create', 'change', 'delete'] as const)
    .map((action) => `${changes.filter((change) => change.action === action).length} ${pasts[action]}`)
    .join(', ')
}

function outcomeToJson({ change, status, message, warnings }: Outcome) {
  return {
    ...{ ...changeToJson(change), status },
    ...(message === undefined ? {} : { message }),
    ...(warnings.length === 0 ? {} : { warnings }),
  }
}

function describeFailure(outcomes: readonly Outcome[], isInterrupted: boolean): string {
  const of = (status: Outcome['status']) => outcomes.filter((outcome) => outcome.status === status)
  const failed = of('failed').map(describeOutcome)
  const skipped = of('skipped').map(({ change }) => `${singular[change.kind]} ${printable(change.name)}`)
  const parts = [
    `\n${isInterrupted ? 'Interrupted' : 'Not all is done'}: ${of('done').length} of ${outcomes.length} changes are made.`,
    ...(failed.length === 0 ? [] : ['Failed:', ...listed(failed)]),
    ...(skipped.length === 0 ? [] : ['Not tried:', ...listed(skipped)]),
    'Run the same command again to continue.',
  ]
  return parts.join('\n')
}

function listed(items: readonly string[]): readonly string[] {
  const more = items.length - listedMax
  return [...items.slice(0, listedMax).map((item) => `  ${item}`), ...(more > 0 ? [`  and ${more} more`] : [])]
}

const listedMax = 20

function describeInvalid(invalid: Awaited<ReturnType<typeof validateDestinations>>): string {
  const lines = invalid.map(({ name, error }) => `  ${printable(name)}: ${printable(error)}`)
  return [
    'The account is as the files say, but these destinations cannot be written to, so their endpoints deliver nothing:',
    ...lines,
    'inlet destinations show NAME prints the policies of role and bucket; inlet apply checks again.',
  ].join('\n')
}
