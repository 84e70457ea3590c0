/**
 * Verifies the files of idempotency keys, also beside the process that writes them.
 *
 * Law: reads only. What was never known to be durable is no damage: a process may be writing it now.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode, type Files } from '#lib/files.ts'
import { storedRequestLimits } from './limits.ts'
import { readCounts } from './request-counts.ts'
import { decodeStoredRequest, STORED_REQUEST_BYTES } from './stored-request.ts'

export type RequestFileCheck = {
  readonly name: string
  readonly intact: number
  readonly damaged: number
  /** Durable once, and in no file now. */
  readonly gone: number
  /** Why the file cannot be read. */
  readonly unreadable?: string
}

const HOUR_MS = 3_600_000
const { readAtOnce } = storedRequestLimits

/** Returns a row for each hour that has not ended before `oldestMs`. Throws if the directory cannot be read. */
export async function verifyRequests(files: Files, directory: string, oldestMs: number): Promise<readonly RequestFileCheck[]> {
  // Counts are written after the requests, so a file has at least what they say.
  const counts = (await readCounts(files, directory))?.hours ?? new Map<number, { written: number; gone: number }>()
  const names = (await files.list(directory)).map(({ name }) => name)
  const hours = new Set([...counts.keys(), ...names.flatMap((name) => /^(\d{1,9})\.requests$/.exec(name)?.[1] ?? []).map(Number)])
  const rows: RequestFileCheck[] = []
  for (const hour of [...hours].sort((a, b) => a - b)) {
    // Ingest may be removing older ones.
    if ((hour + 1) * HOUR_MS < oldestMs) continue
    const name = `${hour}.requests`
    const { written, gone } = counts.get(hour) ?? { written: 0, gone: 0 }
    try {
      const { intact, damaged, places } = await readPlaces(files, join(directory, name), written)
      rows.push({ name, intact, damaged, gone: gone + Math.max(0, written - places) })
    } catch (error) {
      rows.push({ name, intact: 0, damaged: 0, gone, unreadable: errorCode(error) ?? errorMessage(error) })
    }
  }
  return rows
}

/** Damaged places are counted up to the last intact request, and among the first `written`. */
async function readPlaces(files: Files, path: string, written: number) {
  if ((await files.bytes(path)) === undefined) return { intact: 0, damaged: 0, places: 0 }
  const file = await files.open(path, 'read')
  try {
    const bytes = Buffer.alloc(readAtOnce * STORED_REQUEST_BYTES)
    let [intact, damaged, places, doubtful] = [0, 0, 0, 0]
    for (let got = bytes.length; got === bytes.length; ) {
      got = await file.read(bytes, places * STORED_REQUEST_BYTES)
      for (let at = 0; at + STORED_REQUEST_BYTES <= got; at += STORED_REQUEST_BYTES) {
        places += 1
        if (decodeStoredRequest(bytes, at) !== undefined) {
          intact += 1
          damaged += doubtful
          doubtful = 0
        } else if (places <= written) damaged += 1
        else doubtful += 1
      }
    }
    return { intact, damaged, places }
  } finally {
    await file.close()
  }
}
