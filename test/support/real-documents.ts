import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** Public documents that are not part of the project, in INLET_TEST_DATA or beside the checkout. */
const directory = process.env['INLET_TEST_DATA'] ?? resolve(import.meta.dirname, '../../../shared/data')

/** Returns the lines of a real document, or undefined if the file is missing. */
export function realLines(name: 'github-events.ndjson' | 'nginx-plus-status.ndjson'): readonly string[] | undefined {
  const path = resolve(directory, name)
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : undefined
}
