/**
 * The signature by which a node recognizes its own markers.
 *
 * Law: the bucket belongs to the customer, who can write any marker, but not one with a valid signature. So a signed marker is the commit of
 * its segment, whatever is bound to the endpoint by now. The key is random and never leaves the node. One that is damaged is refused: with
 * another key, a node would not recognize what it has committed, and deliver it again.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Files } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import { readOrCreate, readTrimmed } from '#lib/read-or-create.ts'
import type { System } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'

/** The checksum is part of the key. Earlier releases made keys without one. */
const keyPattern = /^([\w-]{43})(?:\.([0-9a-f]{8}))?$/

export class MarkerSeal {
  readonly #key: string

  constructor(key: string) {
    this.#key = key
  }

  /** Reads the node's key. The first start creates it. */
  static async open({ files, random }: Pick<System, 'files' | 'random'>, path: string): Promise<MarkerSeal> {
    const create = () => {
      const secret = random.bytes(32).toString('base64url')
      return `${secret}.${checkOf(secret)}`
    }
    return sealOf(path, await readOrCreate(files, path, create))
  }

  /** The same for a reader that creates nothing. Returns undefined if there is no key. */
  static async read(files: Files, path: string): Promise<MarkerSeal | undefined> {
    const key = await readTrimmed(files, path)
    return key === undefined ? undefined : sealOf(path, key)
  }

  /** Signs the content of a marker. Depends on the order of its fields, not on white space. */
  sign(content: object): string {
    return createHmac('sha256', this.#key).update(JSON.stringify(content)).digest('base64url')
  }

  /** Whether this node wrote the marker, and nobody changed it. */
  isOwn(body: Uint8Array): boolean {
    const parsed = parseJson(Buffer.from(body).toString('utf8'))
    if (typeof parsed !== 'object' || parsed === null || !('signature' in parsed)) return false
    const { signature, ...content } = parsed
    const [given, expected] = [Buffer.from(String(signature)), Buffer.from(this.sign(content))]
    return given.length === expected.length && timingSafeEqual(given, expected)
  }
}

function sealOf(path: string, key: string): MarkerSeal {
  const [, secret = '', check] = keyPattern.exec(key) ?? []
  if (secret === '' || (check !== undefined && check !== checkOf(secret)))
    throw new UserError(
      `${path} is damaged: restore it from a backup; without one, delete it: a segment that was delivered and not reported is then delivered again`,
    )
  return new MarkerSeal(key)
}

function checkOf(secret: string): string {
  return crc32(secret).toString(16).padStart(8, '0')
}
