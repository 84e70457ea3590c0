import type { Suggestion } from '../../api/view-trials.ts'
import type { Definition } from '../../api/views.ts'

type Column = Definition['columns'][number]

/** Returns the suggested columns whose paths neither a column nor `expand` reads, under names that are free. */
export function columnsToAdd(
  { definition: suggested }: Pick<Suggestion, 'definition'>,
  definition: Definition | undefined,
): Column[] {
  const existing = definition?.columns ?? []
  const paths = new Set(existing.map(({ path }) => path))
  // Readers of Parquet ignore the case of names.
  const names = new Set(existing.map(({ name }) => String(name).toLowerCase()))
  return (suggested?.columns ?? [])
    .filter(({ path = '' }) => !paths.has(path) && definition?.expand?.startsWith(`${path}[*]`) !== true)
    .map((column) => {
      const name = freeName(column.name, names)
      names.add(name.toLowerCase())
      return { ...column, name }
    })
}

/** Returns what the suggestion says about a column, by its path. */
export function notesOf({ columns, warnings }: Pick<Suggestion, 'columns' | 'warnings'>): ReadonlyMap<string, string> {
  const byName = new Map(warnings.map(({ column, message }) => [column, message]))
  return new Map(columns.flatMap(({ name, path }) => (byName.has(name) ? [[path, byName.get(name) ?? '']] : [])))
}

function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name
  for (let number = 2; taken.has(free.toLowerCase()); number += 1) free = `${name}_${number}`
  return free
}
