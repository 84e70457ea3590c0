/**
 * Hashes of the values of `dedupe_by`, by which a segment is compared with those before it.
 *
 * Owns: the hash, and its forms in files. Does not own: which keys were written before (delivery/windows/).
 * Law: rows with equal values have equal hashes, whether they are read before a segment is delivered or from its files later. So values are taken in
 * the form that files have. A row with NULL has no hash.
 */
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import { must } from '#lib/assert.ts'
import { KiB } from '#lib/bytes.ts'
import type { CompiledView } from '#views/compiled-view.ts'

/** Size of a hash: as many that are different have one hash in common as never happens. */
export const keyBytes = 16

/** The keys of a segment and of those before it. */
export type KeyFilter = {
  /** Where the keys that the segment writes go, in order. */
  readonly path: string
  /** Returns a byte for each key, of 16 bytes: 1 if a segment before wrote it. Called in the order of keys. */
  readonly find: (keys: Uint8Array) => Promise<Uint8Array>
}

/** SQL for the hash in hexadecimal; NULL if a column is NULL. `names` are SQL. */
export function keyHashSql(names: readonly string[]): string {
  // A length before each text: ('a', 'bc') is another key than ('ab', 'c').
  const parts = names.map((name) => `CAST(strlen(CAST(${name} AS VARCHAR)) AS VARCHAR) || ':' || CAST(${name} AS VARCHAR)`)
  return `left(sha256(${parts.join(' || ')}), ${2 * keyBytes})`
}

/** SQL for the hash of a row of a view's file. */
export function fileKeySql({ columns, layout }: CompiledView): string {
  return keyHashSql(layout.dedupeBy.map((index) => quoteIdentifier(must(columns[index], 'a column').name)))
}

/** SQL that writes the hashes of rows to a file, in order. */
export function copyHashesSql(hash: string, rows: string, path: string): string {
  return `COPY (SELECT ${hash} AS hash FROM (${rows}) WHERE ${hash} IS NOT NULL ORDER BY hash)
    TO ${quoteLiteral(path)} (FORMAT csv, HEADER false)`
}

/** SQL for the hashes that such a file has. */
export function readHashesSql(path: string): string {
  return `SELECT hash FROM read_csv(${quoteLiteral(path)}, header = false, columns = {'hash': 'VARCHAR'}, auto_detect = false)`
}

const lineBytes = 2 * keyBytes + 1
const chunkLines = 16 * KiB

/**
 * Reads a file of hashes, writes those that `find` does not know to `keys`, 16 bytes each, and the others to `known` in the form of the file.
 * Returns how many there are of each.
 */
export async function separateKeys(
  hashes: string,
  { path, find }: KeyFilter,
  known: string,
): Promise<{ readonly fresh: number; readonly known: number }> {
  await using files = new AsyncDisposableStack()
  const create = async (to: string): Promise<FileHandle> => {
    const file = await open(to, 'wx')
    files.defer(() => file.close())
    return file
  }
  const [freshFile, knownFile] = [await create(path), await create(known)]
  const counts = { fresh: 0, known: 0 }
  for await (const lines of readLines(hashes)) {
    const count = lines.length / lineBytes
    const keys = Buffer.allocUnsafe(count * keyBytes)
    for (let at = 0; at < count; at += 1) {
      const line = lines.toString('latin1', at * lineBytes, (at + 1) * lineBytes - 1)
      keys.write(line, at * keyBytes, 'hex')
    }
    const found = await find(keys)
    let [freshEnd, knownEnd] = [0, 0]
    for (let at = 0; at < count; at += 1) {
      if (found[at] === 1) {
        lines.copyWithin(knownEnd, at * lineBytes, (at + 1) * lineBytes)
        knownEnd += lineBytes
      } else {
        keys.copyWithin(freshEnd, at * keyBytes, (at + 1) * keyBytes)
        freshEnd += keyBytes
      }
    }
    await freshFile.appendFile(keys.subarray(0, freshEnd))
    await knownFile.appendFile(lines.subarray(0, knownEnd))
    counts.fresh += freshEnd / keyBytes
    counts.known += knownEnd / lineBytes
  }
  return counts
}

/** Yields whole lines. */
async function* readLines(path: string): AsyncIterable<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of createReadStream(path, { highWaterMark: chunkLines * lineBytes })) {
    const bytes = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer])
    const whole = bytes.length - (bytes.length % lineBytes)
    rest = bytes.subarray(whole)
    if (whole > 0) yield bytes.subarray(0, whole)
  }
}
