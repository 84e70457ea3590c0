/** Reads files into what they declare, and remembers where each part is. */
import { nearestName } from '#lib/nearest-name.ts'
import { readYamlStream, YamlError, type YamlPart } from '#lib/yaml-text.ts'
import { parseFields } from '#model/field-errors.ts'
import {
  type DeclaredBinding,
  type DeclaredDestination,
  type DeclaredEndpoint,
  type DeclaredKey,
  type DeclaredView,
  declaredKinds,
  type SetupKind,
  setupKinds,
} from '#model/setup.ts'
import { setupLimits } from './limits.ts'
import { type Place, Problems, printPlace } from './problems.ts'
import type { SetupFile } from './read-files.ts'
import { type Environment, replaceVariables } from './variables.ts'

/** A value, and the part of a file that declares it. */
export type Declared<T> = { readonly value: T; readonly source: Source }

export type DeclaredSetup = {
  readonly destinations: readonly Declared<DeclaredDestination>[]
  readonly endpoints: readonly Declared<DeclaredEndpoint>[]
  readonly views: readonly Declared<DeclaredView>[]
  readonly bindings: readonly Declared<DeclaredBinding>[]
  readonly keys: readonly Declared<DeclaredKey>[]
  /** Kinds that a file has, if only as an empty list. */
  readonly kinds: ReadonlySet<SetupKind>
  /** Names of each kind, also of those that are not valid. */
  readonly names: Readonly<Record<SetupKind, ReadonlySet<string>>>
}

/** An entry of a list in a file. */
export class Source {
  readonly #file: string
  readonly #part: YamlPart
  readonly #path: readonly string[]

  constructor(file: string, part: YamlPart, path: readonly string[]) {
    this.#file = file
    this.#part = part
    this.#path = path
  }

  /** Adds a problem of a field, by its dotted path; empty for the whole entry. */
  report(problems: Problems, field: string, message: string, excerpt?: string): void {
    const path = [...this.#path, ...(field === '' ? [] : field.split('.'))]
    problems.add({ file: this.#file, position: this.#part.positionOf(path) }, printPath(path), message, excerpt)
  }

  get place(): Place {
    return { file: this.#file, position: this.#part.positionOf(this.#path) }
  }

  /** The source of a part of it. */
  at(...path: readonly string[]): Source {
    return new Source(this.#file, this.#part, [...this.#path, ...path])
  }
}

/** Problems are added, and what has none is returned. Entries of other kinds than `wanted` are not looked at. */
export function readDeclared(
  files: readonly SetupFile[],
  environment: Environment,
  problems: Problems,
  wanted: readonly SetupKind[] = setupKinds,
): DeclaredSetup {
  const found: Record<SetupKind, Declared<unknown>[]> = { destinations: [], endpoints: [], views: [], bindings: [], keys: [] }
  const named = Object.fromEntries(setupKinds.map((kind) => [kind, new Set<string>()])) as Record<SetupKind, Set<string>>
  const kinds = new Set<SetupKind>()
  for (const file of files) {
    for (const { part, value: content } of readParts(file, problems)) {
      for (const [kind, entries] of listsOf(new Source(file.name, part, []), content, problems)) {
        kinds.add(kind)
        if (!wanted.includes(kind)) continue
        for (const [index, entry] of entries.entries()) {
          const source = new Source(file.name, part, [kind, String(index)])
          const name = nameOf(entry)
          if (name !== undefined) named[kind].add(name)
          const value = readEntry(kind, entry, source, environment, problems)
          if (value !== undefined) found[kind].push({ value, source })
        }
      }
    }
  }
  const setup = { ...found, kinds, names: named } as unknown as DeclaredSetup
  for (const { value } of setup.destinations) named.destinations.add(value.name)
  for (const { value } of setup.endpoints) named.endpoints.add(value.name)
  reportRepeated(setup, problems)
  return setup
}

/** Returns the documents of a file. */
export function readParts({ name, text }: SetupFile, problems: Problems): readonly { part: YamlPart; value: unknown }[] {
  try {
    return readYamlStream(text, setupLimits.yaml).map((part) => ({ part, value: part.toValue() }))
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    problems.add({ file: name, position: error.position }, '', error.message)
    return []
  }
}

/**
 * Adds a problem for each test file that looks like a set-up, and returns the others: what it declares would not be read, and --prune would delete
 * it.
 */
export function rejectMisnamed(tests: readonly SetupFile[], problems: Problems): readonly SetupFile[] {
  return tests.filter((file) => {
    // `inlet test` says what else is wrong with the file.
    const found = readParts(file, new Problems()).flatMap(({ part, value }) =>
      setupKinds
        .filter((kind) => typeof value === 'object' && value !== null && Object.hasOwn(value, kind))
        .map((kind) => ({ part, kind })),
    )
    const message = 'is not read from a file whose name ends in .test.yaml, which has tests of views: rename the file'
    for (const { part, kind } of found) problems.add({ file: file.name, position: part.positionOf([kind]) }, kind, message)
    return found.length === 0
  })
}

/** Returns the lists of a document by kind. */
function listsOf(source: Source, content: unknown, problems: Problems): readonly (readonly [SetupKind, readonly unknown[]])[] {
  // A document of comments alone.
  if (content === null || content === undefined) return []
  if (typeof content !== 'object' || Array.isArray(content)) {
    source.report(problems, '', `must be a map with ${setupKinds.join(', ')}`)
    return []
  }
  return Object.entries(content).flatMap(([kind, entries]) => {
    if (kind === 'secrets') {
      source.report(problems, kind, 'are in no file, not even by name: create them with inlet secrets create')
      return []
    }
    if (!isKind(kind)) {
      const nearest = nearestName(kind, setupKinds)
      source.report(
        problems,
        kind,
        `is not known: ${nearest === undefined ? `known are ${setupKinds.join(', ')}` : `did you mean ${nearest}?`}`,
      )
      return []
    }
    if (Array.isArray(entries)) return [[kind, entries] as const]
    source.report(problems, kind, 'must be a list: begin each entry with "- "')
    return []
  })
}

function readEntry(kind: SetupKind, entry: unknown, source: Source, environment: Environment, problems: Problems): unknown {
  // A definition is the same everywhere, and its conditions may have any text.
  const replaced = kind === 'views' ? { value: entry, problems: [] } : replaceVariables(entry, environment)
  for (const { path, message } of replaced.problems) source.report(problems, path, message)
  if (replaced.problems.length > 0) return undefined
  const parsed = parseFields<unknown>(declaredKinds[kind], replaced.value)
  if (parsed.errors === undefined) return parsed.value
  for (const { path, message } of parsed.errors) source.report(problems, path, message)
  if (parsed.omitted > 0) source.report(problems, '', `has ${parsed.omitted} more problems`)
  return undefined
}

function reportRepeated(setup: DeclaredSetup, problems: Problems): void {
  const { destinations, endpoints, views, bindings, keys } = setup
  for (const list of [destinations, endpoints, views, keys])
    reportSame<{ readonly name: string }>(list, ({ name }) => name, 'name', problems)
  reportSame(bindings, ({ endpoint, view, version }) => JSON.stringify([endpoint, view, version]), 'view', problems)
}

function reportSame<T>(list: readonly Declared<T>[], identityOf: (value: T) => string, field: string, problems: Problems): void {
  const first = new Map<string, Source>()
  for (const { value, source } of list) {
    const earlier = first.get(identityOf(value))
    if (earlier === undefined) first.set(identityOf(value), source)
    else source.report(problems, field, `is declared twice: the first time in ${printPlace(earlier.place)}`)
  }
}

function isKind(name: string): name is SetupKind {
  return (setupKinds as readonly string[]).includes(name)
}

function nameOf(entry: unknown): string | undefined {
  const name = typeof entry === 'object' && entry !== null && 'name' in entry ? entry.name : undefined
  return typeof name === 'string' ? name : undefined
}

/** `endpoints.0.region` becomes `endpoints[0].region`. */
function printPath(path: readonly string[]): string {
  return path.map((part, index) => (index === 0 ? part : /^\d+$/.test(part) ? `[${part}]` : `.${part}`)).join('')
}
