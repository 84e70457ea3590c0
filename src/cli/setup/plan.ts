/**
 * Compares the files with the account.
 *
 * Law: nothing is changed here, and a plan exists only if all of it can be expected to work: every problem that can be known is found first.
 */
import type { Client } from '#client/client.ts'
import { ApiError } from '#client/errors.ts'
import { inParallel } from '#lib/in-parallel.ts'
import type { SetupKind } from '#model/setup.ts'
import { type Account, readAccount } from './kinds/account.ts'
import { planBindings, removalOfBinding, undeclaredAttachments } from './kinds/bindings.ts'
import type { Change } from './kinds/change.ts'
import { type DeclaredSetup, readDeclared, rejectMisnamed, type Source } from './kinds/declared.ts'
import { planDestinations, removalOfDestination } from './kinds/destinations.ts'
import { planEndpoints, removalOfEndpoint } from './kinds/endpoints.ts'
import { planKeys, removalOfKey, undeclaredKeys } from './kinds/keys.ts'
import { setupLimits } from './kinds/limits.ts'
import { Problems } from './kinds/problems.ts'
import { readSetupFiles } from './kinds/read-files.ts'
import type { Environment } from './kinds/variables.ts'
import { bodyOfDefinition, planViews, removalOfView } from './kinds/views.ts'
import { checkQuotas } from './quotas.ts'

export type Kept = { readonly kind: SetupKind; readonly name: string }

export type Plan = {
  readonly setup: DeclaredSetup
  readonly account: Account
  /** In the order in which they are made: what others refer to is created first and deleted last. */
  readonly changes: readonly Change[]
  /** Resources of the account that no file declares. */
  readonly kept: readonly Kept[]
  readonly notes: readonly string[]
}

export type PlanOptions = {
  readonly client: Client
  /** The key of this command, which is never revoked. */
  readonly apiKey: string
  readonly environment: Environment
  readonly paths: readonly string[]
  readonly prune: boolean
}

/** Throws a UserError that lists all problems. */
export async function makePlan({ client, apiKey, environment, paths, prune }: PlanOptions): Promise<Plan> {
  const problems = new Problems()
  const { files, tests } = await readSetupFiles(paths, problems)
  rejectMisnamed(tests, problems)
  const setup = readDeclared(files, environment, problems)
  const account = await readAccount(client)
  const notes: string[] = []
  const views = planViews(setup, account)
  await checkDefinitions(client, setup, views, problems)
  const wanted = [
    ...planDestinations(setup, account, problems),
    ...planEndpoints(setup, account, problems),
    ...views,
    ...planBindings(setup, account, views, problems),
    ...planKeys(setup, account, problems),
  ]
  checkQuotas(account, wanted, views, problems)
  if (account.keys === undefined && setup.kinds.has('keys'))
    notes.push('The keys are not compared: the API key of this command has no scope admin, so it may not list them.')
  const surplus = findSurplus(setup, account)
  const isPruned = ({ kind, key }: Surplus) => prune && setup.kinds.has(kind) && !(key !== undefined && apiKey.startsWith(key))
  if (prune) reportPruned(setup, surplus.filter(isPruned), problems)
  problems.throwIfAny('Nothing was changed.')
  const kept = surplus.filter((each) => !isPruned(each))
  for (const { kind, name, key } of kept)
    if (prune && key !== undefined && setup.kinds.has(kind))
      notes.push(`The key ${name} is in no file, and is kept because this command uses it.`)
  const removals = surplus.filter(isPruned).map(({ removal }) => removal)
  return {
    ...{ setup, account, notes },
    changes: [...wanted, ...removals.toSorted((a, b) => deletionOrder.indexOf(a.kind) - deletionOrder.indexOf(b.kind))],
    kept: kept.map(({ kind, name }) => ({ kind, name })),
  }
}

/** An endpoint needs its views and its destination until all it has is delivered. */
const deletionOrder: readonly SetupKind[] = ['keys', 'bindings', 'endpoints', 'views', 'destinations']

type Surplus = Kept & {
  readonly removal: Change
  /** The first characters of a key. */
  readonly key?: string
}

/** Returns what the account has and no file, in the order of kinds. */
function findSurplus(setup: DeclaredSetup, account: Account): readonly Surplus[] {
  const { names } = setup
  const surplus: Surplus[] = []
  const add = (removal: Change, key?: string) =>
    surplus.push({ kind: removal.kind, name: removal.name, removal, ...(key === undefined ? {} : { key }) })
  for (const [name, destination] of account.destinations)
    if (!names.destinations.has(name)) add(removalOfDestination(destination))
  for (const [name, endpoint] of account.endpoints) if (!names.endpoints.has(name)) add(removalOfEndpoint(endpoint))
  for (const [name, versions] of account.views)
    if (!names.views.has(name) && versions.some(({ status }) => status === 'published')) add(removalOfView(name, versions))
  for (const attachment of undeclaredAttachments(setup, account)) {
    // These go with their endpoint or view.
    const { endpoint, view } = attachment
    const isWithOther = isSurplus(setup, 'endpoints', endpoint) || isSurplus(setup, 'views', view)
    if (!isWithOther) add(removalOfBinding(attachment))
  }
  for (const key of undeclaredKeys(setup, account)) add(removalOfKey(key), key.prefix)
  return surplus
}

function isSurplus({ kinds, names }: DeclaredSetup, kind: SetupKind, name: string): boolean {
  return kinds.has(kind) && !names[kind].has(name)
}

/** Reports declared resources that need what would be pruned. */
function reportPruned(setup: DeclaredSetup, pruned: readonly Surplus[], problems: Problems): void {
  const gone = new Set(pruned.map(({ kind, name }) => `${kind} ${name}`))
  const check = (source: Source, field: string, kind: SetupKind, name: string | null) => {
    if (name !== null && gone.has(`${kind} ${name}`))
      source.report(problems, field, `names ${name}, which is in no file, so --prune would delete it: declare it too`)
  }
  for (const { value, source } of setup.endpoints) check(source, 'destination', 'destinations', value.destination)
  for (const { value, source } of setup.bindings) {
    check(source, 'endpoint', 'endpoints', value.endpoint)
    check(source, 'view', 'views', value.view)
  }
  for (const { value, source } of setup.keys)
    for (const [index, name] of (value.endpoints ?? []).entries()) check(source, `endpoints.${index}`, 'endpoints', name)
}

/** Compiles new definitions, as delivery would. */
async function checkDefinitions(
  client: Client,
  setup: DeclaredSetup,
  changes: readonly Change[],
  problems: Problems,
): Promise<void> {
  const changed = new Set(changes.map(({ name }) => name))
  const declared = setup.views.filter(({ value }) => changed.has(value.name))
  await inParallel(setupLimits.previewsParallel, declared, async ({ value: { definition }, source }) => {
    try {
      await client.previewView({ definition: bodyOfDefinition(definition), samples: ['{}'] })
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'validation_error') throw error
      if (error.errors.length === 0) source.report(problems, 'definition', error.message)
      for (const { path, message, excerpt } of error.errors) source.report(problems, path, message, excerpt)
    }
  })
}
