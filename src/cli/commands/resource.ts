/** Builds the commands about the things of an account. Each calls one operation of the API. */
import { buildCommand, type FlagParametersForType } from '@stricli/core'
import { operations } from '#client/generated/operations.ts'
import type { CallFlags, CallSpec, Columns, ListFlags, ListSpec, OperationName, Target } from '../resources/run.ts'
import type { CliContext } from '../terminal/context.ts'
import { flag, integer, json, optional, withDefault } from './parameters.ts'

const limitMax = 100_000

const placeholders: Readonly<Record<Target, string>> = {
  endpoint: 'ENDPOINT',
  destination: 'DESTINATION',
  secret: 'SECRET',
  view: 'VIEW',
  'published view': 'VIEW',
  id: 'ID',
}

type Filter = ListSpec['filters'][string] & { readonly brief: string; readonly placeholder: string }

type ListOptions = {
  readonly noun: string
  readonly query?: ListSpec['query']
  readonly filters?: Readonly<Record<string, Filter>>
  readonly columns: Columns
  readonly reportsMissing?: true
}

export function listCommand(operation: OperationName, brief: string, { query = {}, filters = {}, ...rest }: ListOptions) {
  const targets = targetsOf(operation)
  const spec: ListSpec = { ...rest, operation, query, targets, filters }
  const own = Object.entries(filters).map(([name, { brief, placeholder }]) => [name, optional(brief, placeholder)])
  return buildCommand<ListFlags, string[], CliContext>({
    loader: async () => {
      const { runList } = await import('../resources/run.ts')
      return function (this: CliContext, flags: ListFlags, ...given: readonly string[]) {
        return runList(this, spec, flags, given)
      }
    },
    parameters: {
      flags: {
        ...Object.fromEntries(own),
        limit: withDefault('50', 'how many to show', 'N', integer(1, limitMax)),
        all: flag('show all'),
        json,
      } as unknown as FlagParametersForType<ListFlags, CliContext>,
      positional: positional(targets),
    },
    docs: { brief },
  })
}

type CallOptions = Partial<Omit<CallSpec, 'query'>> & {
  readonly help?: string
  /** Brief of each boolean that is passed on. */
  readonly query?: Readonly<Record<string, string>>
}

export function callCommand(operation: OperationName, brief: string, { help, query, done = '', ...rest }: CallOptions = {}) {
  const targets = targetsOf(operation)
  const body = operations[operation].input === 'body'
  const spec: CallSpec = { ...rest, operation, targets, body, done, ...(query && { query: Object.keys(query) }) }
  const booleans = Object.entries(query ?? {}).map(([name, text]) => [name, flag(text)])
  const fields = {
    file: optional('fields as YAML or JSON; - reads them from a pipe', 'FILE'),
    set: {
      kind: 'parsed',
      parse: String,
      optional: true,
      variadic: true,
      brief: 'a field, such as name=shop; may be repeated',
      placeholder: 'FIELD=VALUE',
    },
  }
  const wait = flag('start jobs until nothing is left, and follow them')
  const yes = flag('do not ask')
  return buildCommand<CallFlags, string[], CliContext>({
    loader: async () => {
      const { runCall } = await import('../resources/run.ts')
      return function (this: CliContext, flags: CallFlags, ...given: readonly string[]) {
        return runCall(this, spec, flags, given)
      }
    },
    parameters: {
      flags: {
        ...(body ? fields : {}),
        ...Object.fromEntries(booleans),
        ...(spec.startsJobs === undefined ? {} : { wait }),
        ...(spec.warning === undefined ? {} : { yes }),
        json,
      } as unknown as FlagParametersForType<CallFlags, CliContext>,
      positional: positional(targets),
      ...(body ? { aliases: { f: 'file' } } : {}),
    } as never,
    docs: { brief, ...(help === undefined ? {} : { fullDescription: help }) },
  })
}

/** Returns the arguments of an operation by its path: resources of `/v1/endpoints/{id}` can be named, others have ids. */
function targetsOf(operation: OperationName): readonly Target[] {
  const ids = operations[operation].path.matchAll(/(\w+)s\/\{(\w+)\}/g)
  return [...ids].map(([, resource = '', id]) =>
    isNamed(resource) && (id === 'id' || id === `${resource}_id`) ? resource : 'id',
  )
}

function isNamed(resource: string): resource is 'endpoint' | 'destination' | 'secret' | 'view' {
  return ['endpoint', 'destination', 'secret', 'view'].includes(resource)
}

function positional(targets: readonly Target[]) {
  const parameters = targets.map((target) => ({
    parse: String,
    brief: target === 'id' ? 'its id' : `name or id of the ${target}`,
    placeholder: placeholders[target],
  }))
  return { kind: 'tuple', parameters } as never
}
