import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { KiB } from './bytes.ts'

const CHUNK_BYTES = 256 * KiB

/** Reads a file, on once `onRead` has resolved. Returns its size and its SHA-256 in hexadecimal. */
export async function digestFile(
  path: string,
  signal?: AbortSignal,
  onRead?: (bytes: number) => Promise<void> | void,
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const hash = createHash('sha256')
  await using file = await open(path)
  // One buffer for all chunks: a stream would allocate each, and V8 would collect its whole heap every few megabytes.
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  for (let bytes = 0; ; ) {
    signal?.throwIfAborted()
    const { bytesRead } = await file.read(chunk, 0, chunk.byteLength, bytes)
    if (bytesRead === 0) return { bytes, sha256: hash.digest('hex') }
    hash.update(chunk.subarray(0, bytesRead))
    bytes += bytesRead
    await onRead?.(bytesRead)
  }
}
