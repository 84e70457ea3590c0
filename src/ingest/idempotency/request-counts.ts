/**
 * How many requests are durable in the file of each hour, and how old they are by the time that the node ran, in a file beside them: `counts`.
 *
 * Owns: that file. Does not own: when it is written, what follows from it (request-files.ts).
 * Law: what it says was durable before. So a file with fewer requests was cut, removed, or replaced by an older copy.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { type Files, writeDurably } from '#lib/files.ts'

const countsName = 'counts'

export type RequestCount = {
  readonly written: number
  /** So many more were there once. */
  readonly gone: number
  /** So many of those that are there cannot be read. */
  readonly damaged: number
  /** For how long the node had run, in all, when one was last appended. */
  readonly ranMs: number
}

type RequestCounts = {
  /** For how long the node has run, in all. A lower bound. */
  readonly ranMs: number
  /** By the hour since 1970. */
  readonly hours: ReadonlyMap<number, RequestCount>
}

/** Returns undefined if there are none, or they are damaged. */
export async function readCounts(files: Files, directory: string): Promise<RequestCounts | undefined> {
  const bytes = await files.read(join(directory, countsName)).catch(() => undefined)
  const text = Buffer.from(bytes ?? []).toString('latin1')
  const end = text.indexOf('\n') + 1
  const lines = text.slice(end)
  if (end === 0 || text.slice(0, end) !== headOf(lines)) return undefined
  const rows = lines.split('\n').flatMap((line) => {
    if (!/^\d{1,9}( \d{1,15}){4}$/.test(line)) return []
    const [hour = 0, written = 0, gone = 0, damaged = 0, ranMs = 0] = line.split(' ').map(Number)
    return [[hour, { written, gone, damaged, ranMs }] as const]
  })
  const ranMs = Number(/^ran (\d{1,15})$/m.exec(lines)?.[1] ?? 0)
  return { ranMs, hours: new Map(rows) }
}

/** Returns the lines of the hours; none if there is nothing to count. */
export function printCounts(counts: Iterable<readonly [number, RequestCount]>): string {
  return [...counts]
    .map(([hour, { written, gone, damaged, ranMs }]) => `${hour} ${written} ${gone} ${damaged} ${Math.floor(ranMs)}\n`)
    .join('')
}

export async function writeCounts(files: Files, directory: string, hours: string, ranMs: number): Promise<void> {
  const path = join(directory, countsName)
  const lines = `ran ${Math.floor(ranMs)}\n${hours}`
  if (hours === '') await files.remove(path)
  else await writeDurably(files, path, Buffer.from(headOf(lines) + lines))
}

function headOf(lines: string): string {
  return `${crc32(lines).toString(16).padStart(8, '0')}\n`
}
