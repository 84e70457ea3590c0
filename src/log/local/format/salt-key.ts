/**
 * The secret that ties frames and footers to their segment, and the key that it is computed with.
 *
 * Owns: `<wal>/salt-key`, and how a salt follows from it. Does not own: where a segment stores its salt (segment-file.ts).
 * Law: nobody without the key can know the salt of a segment, even with its name and the salts of all others. So bytes that a client sends
 * are never taken for a frame, a header or a footer. With the key, the salt of a segment is known even if its header is lost.
 */
import { Buffer } from 'node:buffer'
import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { crc32c } from '@node-rs/crc32'
import { type Files, writeDurably } from '#lib/files.ts'
import type { Random } from '#lib/random.ts'
import type { SegmentRef } from '../../segment-source.ts'
import { listSegments } from './directory.ts'
import type { Salt } from './frame.ts'

export type SaltKey = {
  readonly secret: Uint8Array
  /** The key was lost once. The salts of older segments are only in their headers. */
  readonly isReplacement: boolean
}

const saltKeyName = 'salt-key'
const SECRET_BYTES = 32
const keyPattern = /^(([0-9a-f]{64}) (first|replacement)) ([0-9a-f]{8})\n$/

export function computeSalt(secret: Uint8Array, { logName, seq, incarnation }: SegmentRef): Salt {
  const digest = createHmac('sha256', secret).update(`${logName}/${seq}-${incarnation}`).digest()
  const length = digest.readUInt32LE(0)
  return { length: length === 0xffff_ffff ? 0 : length, crc: digest.readUInt32LE(4) }
}

/** Returns the key of a WAL directory, or undefined if it is missing or damaged. */
export async function readSaltKey(files: Files, walDirectory: string): Promise<SaltKey | undefined> {
  const bytes = await files.read(join(walDirectory, saltKeyName))
  const [, text = '', hex = '', origin, check] = keyPattern.exec(Buffer.from(bytes ?? []).toString('latin1')) ?? []
  if (check === undefined || check !== checkOf(text)) return undefined
  return { secret: Buffer.from(hex, 'hex'), isReplacement: origin === 'replacement' }
}

/**
 * Returns the salt of a segment, whose header has `stored`, or undefined if it cannot be known. A header that is not the key's is one that
 * a client wrote, unless the key was lost.
 */
export function trustedSalt(key: SaltKey | undefined, segment: SegmentRef, stored: Salt | undefined): Salt | undefined {
  if (key === undefined || (key.isReplacement && stored !== undefined)) return stored
  return computeSalt(key.secret, segment)
}

/** The key of the process that writes the log. It is read once, so that a file which is removed later changes nothing. */
export class WrittenSaltKey {
  readonly #files: Files
  readonly #directory: string
  readonly #random: Random
  #ensured: Promise<SaltKey> | undefined

  constructor(files: Files, walDirectory: string, random: Random) {
    this.#files = files
    this.#directory = walDirectory
    this.#random = random
  }

  /** Returns the key, or undefined if it is missing or damaged, and not needed yet. */
  find(): Promise<SaltKey | undefined> {
    return this.#ensured ?? readSaltKey(this.#files, this.#directory)
  }

  /** Returns the key. Creates it if it is missing, damaged or unreadable. It is durable then. */
  ensure(): Promise<SaltKey> {
    this.#ensured ??= this.#create().catch((error: unknown) => {
      this.#ensured = undefined
      throw error
    })
    return this.#ensured
  }

  async #create(): Promise<SaltKey> {
    // An unreadable key must not stop every log. The salts that were computed with it are in the headers.
    const known = await readSaltKey(this.#files, this.#directory).catch(() => undefined)
    if (known !== undefined) return known
    const isReplacement = (await listSegments(this.#files, this.#directory)).length > 0
    const secret = this.#random.bytes(SECRET_BYTES)
    const key = { secret, isReplacement }
    await writeDurably(this.#files, join(this.#directory, saltKeyName), encodeSaltKey(key))
    return key
  }
}

export function encodeSaltKey({ secret, isReplacement }: SaltKey): Uint8Array {
  const text = `${Buffer.from(secret).toString('hex')} ${isReplacement ? 'replacement' : 'first'}`
  return Buffer.from(`${text} ${checkOf(text)}\n`, 'latin1')
}

function checkOf(text: string): string {
  return crc32c(text).toString(16).padStart(8, '0')
}
