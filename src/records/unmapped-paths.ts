/**
 * Finds the paths of the records that no column of a view reads, which reveals schema drift.
 *
 * Owns: which parts of a record a column reads. Does not own: the contents of the samples (sample-profile.ts).
 * Law: only the topmost path is reported: for an object that no column reads from, the object itself. Names are hostile: the number of
 * paths and their length are bounded.
 */
import { qualityLimits } from '#model/limits.ts'
import { descriptorOf } from '#model/types/column-type.ts'
import { byFrequency, JsonKind, type SeenPath } from '#model/view-quality.ts'
import type { ViewRules } from '#views/compiled-view.ts'
import { printPath, type Step } from '#views/json-path.ts'
import type { Kind, Profile, ProfileNode } from './sample-profile.ts'

/** The parts of a node, and of the nodes below it, that columns read. */
type Taken = {
  takesAll: boolean
  takesScalars: boolean
  readonly names: Map<string, Taken>
  /** The elements of a list. A column that reads one index counts as reading all. */
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

/** Returns the unmapped paths, the most frequent first. */
export function unmappedPaths({ root }: Profile, view: Pick<ViewRules, 'columns' | 'expand'>): readonly SeenPath[] {
  const found = new Map<string, SeenPath>()
  const report = (node: ProfileNode, records: number, which: (kind: Kind) => boolean): void => {
    const path = shortenedPath(node)
    const before = found.get(path)
    const types = new Set([...node.kinds].filter(which).map((kind) => kinds[kind]))
    for (const type of before?.types ?? []) types.add(type)
    // Shortened names may be equal.
    const most = Math.max(records, before?.records ?? 0)
    found.set(path, { path, types: JsonKind.options.filter((type) => types.has(type)), records: most })
  }
  const visit = (node: ProfileNode, taken: Taken | undefined): void => {
    if (node.found === 0 || taken?.takesAll) return
    if (taken === undefined) {
      report(node, node.found, () => true)
      return
    }
    if (node.scalars > 0 && !taken.takesScalars) report(node, node.scalars, (kind) => kind !== 'object' && kind !== 'list')
    for (const [name, inner] of node.names) visit(inner, taken.names.get(name))
    if (node.items !== undefined) visit(node.items, taken.items)
  }
  visit(root, takenBy(view))
  return [...found.values()].toSorted(byFrequency).slice(0, qualityLimits.pathsMax)
}

function takenBy({ columns, expand }: Pick<ViewRules, 'columns' | 'expand'>): Taken {
  const root = newTaken()
  for (const { source: path, type } of columns) {
    if (path.from !== 'record') continue
    let at = root
    for (const step of [...stepsTo(path.of, expand), ...path.steps])
      at = step === 'each' || 'index' in step ? itemsOf(at) : nameOf(at, step.key)
    // The list that [*] creates is not a list in the record.
    for (let depth = path.hasEach ? 1 : 0; depth < type.depth; depth += 1) at = itemsOf(at)
    at.takesScalars = true
    if (descriptorOf(type.scalar).acceptsAnyText) at.takesAll = true
  }
  return root
}

/** Returns the steps to where a path starts. */
function stepsTo(of: 'item' | 'parent' | undefined, expand: ViewRules['expand']): readonly Step[] {
  if (of === undefined || expand === undefined) return []
  const { steps, inner } = expand
  return [...steps, 'each', ...(of === 'item' && inner !== undefined ? [...inner, 'each' as const] : [])]
}

function itemsOf(taken: Taken): Taken {
  taken.items ??= newTaken()
  return taken.items
}

function nameOf(taken: Taken, name: string): Taken {
  const known = taken.names.get(name) ?? newTaken()
  taken.names.set(name, known)
  return known
}

function newTaken(): Taken {
  return { takesAll: false, takesScalars: false, names: new Map(), items: undefined }
}

function shortenedPath({ steps }: ProfileNode): string {
  const path = printPath(steps).toWellFormed()
  if (path.length <= qualityLimits.pathCharsMax) return path
  return `${path.slice(0, qualityLimits.pathCharsMax - 1).toWellFormed()}…`
}
