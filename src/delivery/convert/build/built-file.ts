import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress } from 'node:zlib'
import { digestFile } from '#lib/digest-file.ts'
import { systemFiles } from '#lib/files.ts'
import type { ArtifactKind } from '#model/artifact.ts'

/** A file of a segment, built on the local disk. */
export type BuiltFile = {
  readonly kind: ArtifactKind
  readonly path: string
  readonly bytes: number
  readonly rows: number
  readonly sha256: string
  /** The view version that the file belongs to. */
  readonly view?: { readonly id: string; readonly version: number }
}

const ZSTD_LEVEL = 3
const CHUNK_BYTES = 256 * 1024

/** Reads a file, to describe it. */
export async function describeFile(path: string, signal: AbortSignal): Promise<Pick<BuiltFile, 'path' | 'bytes' | 'sha256'>> {
  return { path, ...(await digestFile(systemFiles, path, signal)) }
}

/** Writes the content to a new file, compressed with zstd and with a checksum. Any zstd program can decompress it. */
export async function compressTo(path: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
  const params = { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL, [constants.ZSTD_c_checksumFlag]: 1 }
  await pipeline(content, createZstdCompress({ params, chunkSize: CHUNK_BYTES }), createWriteStream(path, { flags: 'wx' }), {
    signal,
  })
}
