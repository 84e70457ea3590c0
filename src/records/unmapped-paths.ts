/**
 * Which paths of the records no column of a view takes: so a schema that drifts shows.
 *
 * Owns: what a column takes. Does not own: what is in the samples (sample-profile.ts).
 * Law: a path is the topmost place of which nothing is taken: of an object that no column reaches into, the object itself. Names are hostile:
 * the number of paths and the length of each are bounded.
 */
import { qualityLimits } from '#model/limits.ts'
import { descriptorOf } from '#model/types/column-type.ts'
import { byFrequency, JsonKind, type SeenPath } from '#model/view-quality.ts'
import type { CompiledColumn } from '#views/compiled-view.ts'
import { printPath } from '#views/json-path.ts'
import type { Kind, Place, Profile } from './sample-profile.ts'

/** What columns take of a place and of what is under it. */
type Taken = {
  takesAll: boolean
  takesScalars: boolean
  readonly names: Map<string, Taken>
  /** Of the elements of a list: an index is as good as all of them. */
  items: Taken | undefined
}

const kinds = {
  boolean: 'boolean',
  integer: 'integer',
  fraction: 'number',
  text: 'string',
  object: 'object',
  list: 'array',
} as const satisfies Record<Kind, JsonKind>

/** The most frequent first. */
export function unmappedPaths({ root }: Profile, columns: readonly CompiledColumn[]): readonly SeenPath[] {
  const found = new Map<string, SeenPath>()
  const report = (place: Place, records: number, which: (kind: Kind) => boolean): void => {
    const path = shownPath(place)
    const before = found.get(path)
    const types = new Set([...place.kinds].filter(which).map((kind) => kinds[kind]))
    for (const type of before?.types ?? []) types.add(type)
    // Names that are too long may look alike.
    const most = Math.max(records, before?.records ?? 0)
    found.set(path, { path, types: JsonKind.options.filter((type) => types.has(type)), records: most })
  }
  const visit = (place: Place, taken: Taken | undefined): void => {
    if (place.found === 0 || taken?.takesAll) return
    if (taken === undefined) {
      report(place, place.found, () => true)
      return
    }
    if (place.scalars > 0 && !taken.takesScalars) report(place, place.scalars, (kind) => kind !== 'object' && kind !== 'list')
    for (const [name, inner] of place.names) visit(inner, taken.names.get(name))
    if (place.items !== undefined) visit(place.items, taken.items)
  }
  visit(root, takenBy(columns))
  return [...found.values()].toSorted(byFrequency).slice(0, qualityLimits.pathsMax)
}

function takenBy(columns: readonly CompiledColumn[]): Taken {
  const root = nothing()
  for (const { path, type } of columns) {
    if (path.from === 'envelope') continue
    let at = root
    for (const step of path.steps) at = step === 'each' || 'index' in step ? itemsOf(at) : nameOf(at, step.key)
    // The list that [*] makes is none in the record.
    for (let depth = path.hasEach ? 1 : 0; depth < type.depth; depth += 1) at = itemsOf(at)
    at.takesScalars = true
    if (descriptorOf(type.scalar).takesAnyText) at.takesAll = true
  }
  return root
}

function itemsOf(taken: Taken): Taken {
  taken.items ??= nothing()
  return taken.items
}

function nameOf(taken: Taken, name: string): Taken {
  const known = taken.names.get(name) ?? nothing()
  taken.names.set(name, known)
  return known
}

function nothing(): Taken {
  return { takesAll: false, takesScalars: false, names: new Map(), items: undefined }
}

function shownPath({ steps }: Place): string {
  const path = printPath(steps).toWellFormed()
  if (path.length <= qualityLimits.pathCharsMax) return path
  return `${path.slice(0, qualityLimits.pathCharsMax - 1).toWellFormed()}…`
}
