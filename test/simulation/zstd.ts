/**
 * Replaces the compression of copies: Node compresses in threads, which are real. Import it before the modules that compress.
 */

import { syncBuiltinESMExports } from 'node:module'
import zlib from 'node:zlib'

type Done = (error: Error | null, result: Buffer) => void

const copy = (bytes: Uint8Array, _: unknown, done: Done) => done(null, Buffer.from(bytes))
Object.assign(zlib, { zstdCompress: copy, zstdDecompress: copy })
syncBuiltinESMExports()
