/**
 * Notices that the directory of a copy store is another one than before, as while its disk is not mounted: then the place where it belongs is an
 * empty directory on the disk of the node.
 *
 * Owns: `<root>/store-id`, and on the node the file that remembers it. Does not own: the objects.
 * Law: once a node has used the directory, nothing is read from or written to another one at its path, also by later processes.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { writeDurably } from '#lib/files.ts'
import { readOrCreate, readTrimmed } from '#lib/read-or-create.ts'
import type { System } from '#lib/system.ts'

class OtherDirectoryError extends Error {
  override readonly name = 'OtherDirectoryError'
  /** For senders, who must not learn paths. */
  readonly code = 'its directory is another one than before'
}

export class KnownDirectory {
  readonly #system: Pick<System, 'files' | 'random'>
  readonly #root: string
  readonly #rememberedAt: string
  #id: string | undefined

  /** `rememberedAt`: a file on the node. */
  constructor(system: Pick<System, 'files' | 'random'>, root: string, rememberedAt: string) {
    this.#system = system
    this.#root = root
    this.#rememberedAt = rememberedAt
  }

  /** Throws if the directory is another one, or missing. */
  async verify(): Promise<void> {
    const { files } = this.#system
    this.#id ??= await this.#learn()
    if ((await readTrimmed(files, join(this.#root, 'store-id'))) === this.#id) return
    throw new OtherDirectoryError(
      `${this.#root} is not the directory that this node used as its copy store: mount its disk; if the copies are to be here from now on, remove ${this.#rememberedAt}, and start the node again`,
    )
  }

  /** A file that names another path, or is damaged, is replaced. */
  async #learn(): Promise<string> {
    const { files, random } = this.#system
    const lines = (await readTrimmed(files, this.#rememberedAt))?.split('\n')
    if (lines?.length === 2 && lines[0] === this.#root && lines[1]) return lines[1]
    const id = await readOrCreate(files, join(this.#root, 'store-id'), () => random.bytes(16).toString('hex'))
    await writeDurably(files, this.#rememberedAt, Buffer.from(`${this.#root}\n${id}\n`))
    return id
  }
}
