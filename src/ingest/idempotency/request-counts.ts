/**
 * How many requests are durable in the file of each hour, in a file beside them: `counts`.
 *
 * Owns: that file. Does not own: when it is written, what follows from it (request-files.ts).
 * Law: what it says was durable before. So a file with fewer requests was cut, removed, or replaced by an older copy.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { type Files, writeDurably } from '#lib/files.ts'

const countsName = 'counts'

/** `gone`: so many more were there once. */
export type RequestCount = { readonly written: number; readonly gone: number }

/** Returns the counts by hour; undefined if there are none, or they are damaged. */
export async function readCounts(files: Files, directory: string): Promise<ReadonlyMap<number, RequestCount> | undefined> {
  const bytes = await files.read(join(directory, countsName)).catch(() => undefined)
  const text = Buffer.from(bytes ?? []).toString('latin1')
  const end = text.indexOf('\n') + 1
  const lines = text.slice(end)
  if (end === 0 || text.slice(0, end) !== headOf(lines)) return undefined
  const rows = lines.split('\n').flatMap((line) => {
    const [, hour, written, gone] = /^(\d{1,9}) (\d{1,10}) (\d{1,10})$/.exec(line) ?? []
    return hour === undefined ? [] : [[Number(hour), { written: Number(written), gone: Number(gone) }] as const]
  })
  return new Map(rows)
}

/** Returns the lines for `writeCounts`; none if there is nothing to count. */
export function printCounts(counts: Iterable<readonly [number, RequestCount]>): string {
  return [...counts].map(([hour, { written, gone }]) => `${hour} ${written} ${gone}\n`).join('')
}

export async function writeCounts(files: Files, directory: string, lines: string): Promise<void> {
  const path = join(directory, countsName)
  if (lines === '') await files.remove(path)
  else await writeDurably(files, path, Buffer.from(headOf(lines) + lines))
}

function headOf(lines: string): string {
  return `${crc32(lines).toString(16).padStart(8, '0')}\n`
}
