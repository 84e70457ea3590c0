/** Faults that broke a law once. A seed alone is good for one commit: one more call, and its faults come at other calls. */
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plan } from './history.ts'

export type PastFailure = Plan & { readonly broke: string }

const path = join(import.meta.dirname, 'past-failures.jsonl')

export function readPastFailures(): readonly PastFailure[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as PastFailure)
}

/** Returns the line that it adds. */
export function keepFailure(failure: PastFailure): string {
  const line = JSON.stringify(failure)
  appendFileSync(path, `${line}\n`)
  return line
}
