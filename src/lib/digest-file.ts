import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { KiB } from './bytes.ts'
import type { Files } from './files.ts'

const CHUNK_BYTES = 256 * KiB

/** Reads a file, on once `onRead` has resolved. Returns its size and its SHA-256 in hexadecimal. */
export async function digestFile(
  files: Files,
  path: string,
  signal?: AbortSignal,
  onRead?: (bytes: number) => Promise<void> | void,
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const hash = createHash('sha256')
  const file = await files.open(path, 'read')
  try {
    // One buffer for all chunks: a stream would allocate each, and V8 would collect its whole heap every few megabytes.
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    for (let bytes = 0; ; ) {
      signal?.throwIfAborted()
      const got = await file.read(chunk, bytes)
      if (got === 0) return { bytes, sha256: hash.digest('hex') }
      hash.update(chunk.subarray(0, got))
      bytes += got
      await onRead?.(got)
    }
  } finally {
    await file.close()
  }
}
