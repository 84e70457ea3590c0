import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress } from 'node:zlib'
import type { ArtifactKind } from '#model/artifact.ts'

export type BuiltFile = {
  readonly kind: ArtifactKind
  readonly path: string
  readonly bytes: number
  readonly rows: number
  readonly sha256: string
  readonly view?: { readonly id: string; readonly version: number }
}

const ZSTD_LEVEL = 3
const CHUNK_BYTES = 256 * 1024

/** Its size and SHA-256, read as a stream. */
export async function describeFile(
  path: string,
  signal: AbortSignal,
): Promise<{ readonly path: string; readonly bytes: number; readonly sha256: string }> {
  const hash = createHash('sha256')
  let bytes = 0
  await pipeline(
    createReadStream(path, { highWaterMark: CHUNK_BYTES }),
    async (chunks: AsyncIterable<Uint8Array>) => {
      for await (const chunk of chunks) {
        hash.update(chunk)
        bytes += chunk.byteLength
      }
    },
    { signal },
  )
  return { path, bytes, sha256: hash.digest('hex') }
}

/** With zstd, in a format that every zstd program unpacks, with a checksum of its own. */
export async function compressFile(from: string, to: string, signal: AbortSignal): Promise<void> {
  const params = { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL, [constants.ZSTD_c_checksumFlag]: 1 }
  await pipeline(
    createReadStream(from, { highWaterMark: CHUNK_BYTES }),
    createZstdCompress({ params, chunkSize: CHUNK_BYTES }),
    createWriteStream(to, { flags: 'wx' }),
    { signal },
  )
}
