/**
 * The signature by which a node recognizes its own markers.
 *
 * Law: the bucket belongs to the customer, who can write any marker, but not one with a valid signature. So a signed marker is the commit of
 * its segment, whatever is bound to the endpoint by now. The key is random and never leaves the node.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Files } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import { readOrCreateSecret, readTrimmed } from '#lib/read-or-create.ts'
import type { System } from '#lib/system.ts'

const keyChars = 43

export class MarkerSeal {
  readonly #key: string

  constructor(key: string) {
    this.#key = key
  }

  /** Reads the node's key. The first start creates it. */
  static async open(system: Pick<System, 'files' | 'random'>, path: string): Promise<MarkerSeal> {
    return sealOf(path, await readOrCreateSecret(system, path))
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
  if (key.length < keyChars)
    throw new Error(`${path} is damaged: it has fewer than ${keyChars} characters; delete it to create a new one`)
  return new MarkerSeal(key)
}
