import type { UnmappedPath } from '../../api/view-metrics.ts'

type Kind = UnmappedPath['types'][number]
type Proposed = { readonly name: string; readonly type: string; readonly path: string }

/** Returns a column that reads the path, under a name that is free. */
export function proposeColumn({ path, types }: Pick<UnmappedPath, 'path' | 'types'>, taken: readonly string[]): Proposed {
  // Readers of Parquet ignore the case of names.
  const names = new Set(taken.map((name) => name.toLowerCase()))
  const steps = [...path.matchAll(/[\p{L}\p{N}_]+/gu)].map(([step]) => step.toLowerCase())
  const short = nameOf(steps.slice(-1))
  const name = names.has(short) ? nameOf(steps) : short
  return { name: firstFree(name, names), type: path.includes('[*]') ? `${typeOf(types)}[]` : typeOf(types), path }
}

/** A path that was cut leads nowhere. */
export function isWhole({ path }: Pick<UnmappedPath, 'path'>): boolean {
  return !path.endsWith('…')
}

function nameOf(steps: readonly string[]): string {
  const name = steps.join('_')
  return /^[\p{L}_]/u.test(name) ? name : `column_${name}`
}

function firstFree(name: string, taken: ReadonlySet<string>): string {
  let free = name
  for (let number = 2; taken.has(free); number += 1) free = `${name}_${number}`
  return free
}

const typesOfKinds: Readonly<Record<Kind, string>> = {
  boolean: 'BOOLEAN',
  integer: 'BIGINT',
  number: 'DOUBLE',
  string: 'VARCHAR',
  object: 'JSON',
  array: 'JSON',
}

/** JSON takes values of any kinds. */
function typeOf(kinds: readonly Kind[]): string {
  const [only, ...others] = kinds
  if (only !== undefined && others.length === 0) return typesOfKinds[only]
  return kinds.length > 0 && kinds.every((kind) => kind === 'integer' || kind === 'number') ? 'DOUBLE' : 'JSON'
}
