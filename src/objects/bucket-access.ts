/**
 * Permissions of the directory store.
 *
 * Law: only the user of Inlet can read objects, and the members of one group if the operator names it. Nothing else in the data directory
 * is readable for that group.
 */
import { dirname, join, relative, sep } from 'node:path'
import { errorMessage } from '#lib/error-message.ts'
import type { Files } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'

/** Beyond this many they are forgotten, and set once more when they are needed. */
const directoriesMax = 20_000

export class BucketAccess {
  readonly #root: string
  readonly #groupId: number | null
  readonly #files: Files
  readonly #shared = new Set<string>()

  constructor(root: string, groupId: number | null, files: Files) {
    this.#root = root
    this.#groupId = groupId
    this.#files = files
  }

  /** Lets the group reach the buckets. Throws UserError if this process may not. */
  async prepare(): Promise<void> {
    if (this.#groupId === null) return
    await this.#files.makeDirectory(this.#root)
    try {
      // Members may pass through the data directory to the buckets, but not list it.
      await this.#files.setAccess(dirname(this.#root), 0o710, this.#groupId)
      await this.#files.setAccess(this.#root, 0o750, this.#groupId)
    } catch (error) {
      throw new UserError(
        `INLET_BUCKETS_GROUP: cannot give ${this.#root} to group ${this.#groupId} (${errorMessage(error)}); make the user of Inlet a member of that group, and the owner of the data directory`,
        { cause: error },
      )
    }
  }

  /** Sets the permissions of a directory in a bucket, and of those above it. Also of those that a crash or an earlier setting left. */
  async shareDirectory(path: string): Promise<void> {
    if (this.#groupId === null) return
    if (this.#shared.size > directoriesMax) this.#shared.clear()
    const parts = relative(this.#root, path).split(sep)
    for (let depth = 1; depth <= parts.length; depth++) {
      const directory = join(this.#root, ...parts.slice(0, depth))
      if (this.#shared.has(directory)) continue
      await this.#files.setAccess(directory, 0o750, this.#groupId)
      this.#shared.add(directory)
    }
  }

  /** Sets the permissions of an object before it is visible. */
  shareFile(path: string): Promise<void> {
    return this.#files.setAccess(path, this.#groupId === null ? 0o600 : 0o640, this.#groupId)
  }
}
