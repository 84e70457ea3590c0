/** Builds the commands about the things of an account. Each calls one operation of the API. */
import { buildCommand, type FlagParametersForType } from '@stricli/core'
import type { CallFlags, CallSpec, Column, ListFlags, ListSpec, OperationName, Target } from '../resources/run.ts'
import type { CliContext } from '../terminal/context.ts'
import { flag, integer, json, optional, withDefault } from './parameters.ts'

const limitMax = 100_000

const placeholders: Readonly<Record<Target, string>> = {
  endpoint: 'ENDPOINT',
  destination: 'DESTINATION',
  view: 'VIEW',
  'published view': 'VIEW',
  id: 'ID',
}

type Filter = ListSpec['filters'][string] & { readonly brief: string; readonly placeholder: string }

type ListOptions = {
  readonly brief: string
  readonly operation: OperationName
  readonly noun: string
  readonly query?: ListSpec['query']
  readonly targets?: readonly Target[]
  readonly filters?: Readonly<Record<string, Filter>>
  readonly columns: readonly Column[]
  readonly tellsMissing?: true
}

export function listCommand({ brief, query = {}, targets = [], filters = {}, ...rest }: ListOptions) {
  const spec: ListSpec = { ...rest, query, targets, filters }
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

type CallOptions = Omit<CallSpec, 'targets' | 'query'> & {
  readonly brief: string
  readonly help?: string
  readonly targets?: readonly Target[]
  /** Brief of each boolean that is passed on. */
  readonly query?: Readonly<Record<string, string>>
}

export function callCommand({ brief, help, targets = [], query, ...rest }: CallOptions) {
  const spec: CallSpec = { ...rest, targets, ...(query === undefined ? {} : { query: Object.keys(query) }) }
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
        ...(spec.body === true ? fields : {}),
        ...Object.fromEntries(booleans),
        ...(spec.startsJobs === undefined ? {} : { wait }),
        ...(spec.warning === undefined ? {} : { yes }),
        json,
      } as unknown as FlagParametersForType<CallFlags, CliContext>,
      positional: positional(targets),
      ...(spec.body === true ? { aliases: { f: 'file' } } : {}),
    } as never,
    docs: { brief, ...(help === undefined ? {} : { fullDescription: help }) },
  })
}

function positional(targets: readonly Target[]) {
  const parameters = targets.map((target) => ({
    parse: String,
    brief: target === 'id' ? 'its id' : `name or id of the ${target}`,
    placeholder: placeholders[target],
  }))
  return { kind: 'tuple', parameters } as never
}
