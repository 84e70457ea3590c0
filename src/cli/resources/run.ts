/**
 * Runs the commands about the things of an account: calls one operation of the API, and prints what it returned.
 *
 * Owns: names to ids, output. Does not own: which commands there are (commands/), what the API allows.
 */
import type { Client } from '#client/client.ts'
import type { Schemas } from '#client/generated/schema.ts'
import { namedId } from '#lib/named-id.ts'
import { UserError } from '#lib/user-error.ts'
import { findEmptyRegion } from '#model/empty-region.ts'
import { openRemote } from '../remote/remote.ts'
import { formatBytes } from '../segments/format.ts'
import type { CliContext } from '../terminal/context.ts'
import { printJson } from '../terminal/print-json.ts'
import { toTable } from '../terminal/table.ts'
import { confirm } from './confirm.ts'
import { type FieldFlags, readFields } from './fields.ts'
import { findId, type Named } from './find.ts'
import { runJobs } from './jobs.ts'
import { mayLackCommits } from './may-lack-commits.ts'
import { printYaml } from './yaml.ts'

export type OperationName = keyof Client

/** `named`: the fields `<field>_id` and `<field>_name`. */
type Column = string | readonly [field: string, as: 'bytes' | 'list' | 'count' | 'named' | 'present']

/** Columns of a table by their titles: each shows a field, dotted if it is inside another one. */
export type Columns = Readonly<Record<string, Column>>

/** An argument of a command: a resource, or the id of something that has no name. */
export type Target = Named | 'id'

export type ListFlags = { readonly json: boolean; readonly limit: number; readonly all: boolean } & Readonly<
  Record<string, unknown>
>
export type ListSpec = {
  readonly operation: OperationName
  readonly targets: readonly Target[]
  readonly columns: Columns
  /** Options that are passed on, by the name of the query parameter. Those that name a resource become its id. */
  readonly filters: Readonly<Record<string, { readonly parameter: string; readonly names?: Named }>>
  /** Query parameters to send if no option says otherwise. */
  readonly query?: Readonly<Record<string, string>>
  /** Whether its pages say that some may be missing. */
  readonly reportsMissing?: true
  /** Kind of the listed resources, in the plural. */
  readonly noun: string
}

export type CallFlags = { readonly json: boolean; readonly yes?: boolean; readonly wait?: boolean } & FieldFlags &
  Readonly<Record<string, unknown>>
export type CallSpec = {
  readonly operation: OperationName
  readonly targets: readonly Target[]
  /** Whether it has a body. Fields that name a resource may have its name: they become `<name>_id`. */
  readonly body: boolean
  /** Booleans that are passed on in the query. */
  readonly query?: readonly string[]
  /** Whether a view that is named may be a draft. */
  readonly takesDrafts?: true
  /** Whether it needs a region, which is the only one that has nodes if none is given. */
  readonly needsRegion?: boolean
  /** Whether it starts a job, which covers a part of the work, until there is none left: then the command can wait. */
  readonly startsJobs?: true
  /** Consequence for the named resource, if the call cannot be undone. */
  readonly warning?: string
  /** Loads what says more about the resource with the id than the id itself, for the question before such a call. */
  readonly describe?: () => Promise<(client: Client, id: string) => Promise<string>>
  /** Message if nothing is returned. */
  readonly done: string
  /** Loads what shows the response to people, if that is not YAML. */
  readonly print?: () => Promise<(returned: never) => string>
}

type AnyCall = (...args: readonly unknown[]) => PromiseLike<unknown> & AsyncIterable<Record<string, unknown>>

export async function runList(context: CliContext, spec: ListSpec, flags: ListFlags, given: readonly string[]): Promise<void> {
  const { client } = await openRemote(context)
  const ids = await idsOf(client, spec.targets, given)
  const query: Record<string, unknown> = { ...spec.query }
  for (const [flag, { parameter, names }] of Object.entries(spec.filters)) {
    const value = flags[flag]
    if (value !== undefined) query[parameter] = names === undefined ? value : await findId(client, names, String(value))
  }
  const items: Record<string, unknown>[] = []
  let hasMore = false
  const list = (client[spec.operation] as unknown as AnyCall)(...ids, query)
  for await (const item of itemsOf(list)) {
    hasMore = !flags.all && items.length === flags.limit
    if (hasMore) break
    items.push(item)
  }
  const { stdout, stderr } = context.process
  if (flags.json) printJson(context, items)
  else if (items.length === 0) stdout.write(`There are no ${spec.noun}.\n`)
  else
    stdout.write(
      toTable([
        Object.keys(spec.columns),
        ...items.map((item) => Object.values(spec.columns).map((column) => cellOf(item, column))),
      ]),
    )
  const whole = spec.reportsMissing === true ? await list : undefined
  const since = (whole as { readonly may_lack_commits_since?: string | null } | undefined)?.may_lack_commits_since
  if (since != null) stderr.write(`${mayLackCommits(since)}\n`)
  if (hasMore) stderr.write(`There are more: --all shows all of them, --limit N shows N.\n`)
}

export async function runCall(context: CliContext, spec: CallSpec, flags: CallFlags, given: readonly string[]): Promise<void> {
  const { client } = await openRemote(context)
  const ids = await idsOf(client, spec.targets, given)
  if (spec.warning !== undefined && flags.yes !== true) {
    const what = spec.describe === undefined ? given.join(' ') : await (await spec.describe())(client, ids[0] ?? '')
    await confirm(context, `${what}: ${spec.warning}`)
  }
  const query = Object.fromEntries((spec.query ?? []).filter((name) => flags[name] === true).map((name) => [name, true]))
  const input = spec.body ? [await readBody(client, spec, flags)] : spec.query === undefined ? [] : [query]
  const call = () => (client[spec.operation] as unknown as AnyCall)(...ids, ...input)
  if (flags.wait === true) return runJobs(context, client, flags, call as () => PromiseLike<Schemas['Job'] | undefined>)
  const returned = await call()
  const { stdout, stderr } = context.process
  if (flags.json) return printJson(context, returned ?? null)
  if (returned === undefined || returned === null) stdout.write(`${spec.done}\n`)
  else stdout.write(spec.print === undefined ? printYaml(returned) : (await spec.print())(returned as never))
  const problem = findEmptyRegion((returned as Partial<Schemas['Endpoint']> | null | undefined)?.status_reasons ?? [])
  if (problem !== undefined) stderr.write(`Warning: ${problem}. Until one does, the endpoint accepts nothing.\n`)
}

async function readBody(
  client: Client,
  { needsRegion, takesDrafts }: CallSpec,
  flags: CallFlags,
): Promise<Record<string, unknown>> {
  const fields = await withIds(client, await readFields(flags), takesDrafts === true ? 'view' : 'published view')
  if (needsRegion !== true || fields['region'] !== undefined) return fields
  const regions = (await client.listRegions()).items.map(({ region }) => region)
  const [only] = regions
  if (regions.length === 1) return { ...fields, region: only }
  throw new UserError(
    regions.length === 0
      ? 'region: no node has joined yet; start one, or name its region with --set region=…'
      : `region: name one of those that have nodes with --set region=…: ${regions.join(', ')}`,
  )
}

/** A short list of the API comes whole, in a field of its own. */
async function* itemsOf(list: ReturnType<AnyCall>): AsyncIterable<Record<string, unknown>> {
  if (Symbol.asyncIterator in list) return yield* list
  const found = Object.values((await list) as object).find((value) => Array.isArray(value))
  yield* (found ?? []) as readonly Record<string, unknown>[]
}

function idsOf(client: Client, targets: readonly Target[], given: readonly string[]): Promise<readonly string[]> {
  return Promise.all(
    targets.map((target, index) =>
      target === 'id' ? (given[index] ?? '').toLowerCase() : findId(client, target, given[index] ?? ''),
    ),
  )
}

/** Fields `endpoint`, `view` and `destination` may have a name. The API knows ids only. */
async function withIds(
  client: Client,
  fields: Record<string, unknown>,
  viewKind: 'view' | 'published view',
): Promise<Record<string, unknown>> {
  const result: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (name !== 'endpoint' && name !== 'view' && name !== 'destination') result[name] = value
    else if (typeof value === 'string') result[`${name}_id`] = await findId(client, name === 'view' ? viewKind : name, value)
    else throw new UserError(`${name}: must be a name or an id`)
  }
  return result
}

function cellOf(item: Record<string, unknown>, column: Column): string {
  const [field, as] = typeof column === 'string' ? [column] : column
  const value =
    as === 'named'
      ? namedId(String(item[`${field}_id`]), item[`${field}_name`] as string | null)
      : field.split('.').reduce<unknown>((inner, name) => (inner as Record<string, unknown> | null | undefined)?.[name], item)
  if (value === null || value === undefined || value === '') return '-'
  if (as === 'present') return 'yes'
  if (as === 'count') return String(Object.keys(value as object).length)
  if (as === 'list') return (value as readonly unknown[]).join(',') || '-'
  if (as === 'bytes') return formatBytes(Number(value))
  return String(value).replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
}
