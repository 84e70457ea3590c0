/** Reads lines as latin1 strings, which preserve every byte. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { GiB } from '#lib/bytes.ts'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'

const batchLines = 500
const batchBytesMax = 4_000_000

/** Reads the lines of a file, without blank ones. */
export async function readLines(path: string): Promise<readonly string[]> {
  const { size } = await stat(path).catch((error: unknown) => {
    throw new UserError(`cannot read ${path}: ${errorCode(error) ?? String(error)}`)
  })
  if (size > GiB) throw new UserError(`${path} is too large for the demo, which accepts files up to 1 GiB`)
  const lines: string[] = []
  for await (const line of createInterface({ input: createReadStream(path, 'latin1'), crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() !== '') lines.push(line)
  }
  return lines
}

export function* inBatches(lines: readonly string[]): Iterable<readonly string[]> {
  let batch: string[] = []
  let bytes = 0
  for (const line of lines) {
    if (batch.length === batchLines || bytes + line.length > batchBytesMax) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(line)
    bytes += line.length
  }
  if (batch.length > 0) yield batch
}
