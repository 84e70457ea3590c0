import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** Public documents of others, read where they lie: INLET_TEST_DATA, or beside the checkout. They are not part of the project. */
const directory = process.env['INLET_TEST_DATA'] ?? resolve(import.meta.dirname, '../../../shared/data')

/** The lines of a real document, or undefined where it isn't on this machine. */
export function realLines(name: 'github-events.ndjson' | 'nginx-plus-status.ndjson'): readonly string[] | undefined {
  const path = resolve(directory, name)
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : undefined
}
