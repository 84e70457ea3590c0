import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { KiB } from '#lib/bytes.ts'
import { errorCode, systemFiles } from '#lib/files.ts'
import { makePrivateDirectory } from './private-directory.ts'

const chunkBytes = 256 * KiB

export type CopiedFile = { readonly bytes: number; readonly sha256: string }

/**
 * Copies the bytes that a file has now to a new file that only the user can read, and syncs it. What is appended meanwhile is left out.
 * Returns undefined if the file is gone.
 */
export async function copyFile(
  from: string,
  to: string,
  onCopied: (bytes: number) => void = () => undefined,
): Promise<CopiedFile | undefined> {
  let source: Awaited<ReturnType<typeof open>>
  try {
    source = await open(from, 'r')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
  await using _ = source
  const { size } = await source.stat()
  await makePrivateDirectory(dirname(to))
  await using target = await open(to, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600)
  const hash = createHash('sha256')
  // One buffer for all chunks: a stream would allocate each.
  const chunk = Buffer.allocUnsafe(chunkBytes)
  let bytes = 0
  while (bytes < size) {
    const { bytesRead } = await source.read(chunk, 0, Math.min(chunkBytes, size - bytes), bytes)
    if (bytesRead === 0) break
    const read = chunk.subarray(0, bytesRead)
    hash.update(read)
    for (let written = 0; written < bytesRead; ) {
      const { bytesWritten } = await target.write(read, written, bytesRead - written, bytes + written)
      written += bytesWritten
    }
    bytes += bytesRead
    onCopied(bytesRead)
  }
  await target.sync()
  return { bytes, sha256: hash.digest('hex') }
}

/** Makes the names in a directory and in all below it durable. */
export async function syncTree(directory: string): Promise<void> {
  for (const { name, kind } of await systemFiles.list(directory)) if (kind === 'directory') await syncTree(`${directory}/${name}`)
  await systemFiles.syncDirectory(directory)
}
