/**
 * Lets conversion processes of another user reach the files of their task.
 *
 * Owns: group and permissions of those files, and of the directories above them inside the node's directory. Does not own: the processes.
 * Law: if the user of Inlet converts, no permission changes. Otherwise a process reads only the input of a task and writes only the
 * directory of its task, and only while the task runs. Files are taken from it after it has lost that access, and only those that it owns:
 * a link to a secret of Inlet would end up in a bucket.
 */
import { chmod, chown, lstat } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { errorMessage } from '#lib/error-message.ts'
import type { WorkerUser } from '#lib/sandbox.ts'
import { UserError } from '#lib/user-error.ts'

export type WorkerAccessOptions = {
  /** All files of tasks are in it. */
  readonly directory: string
  /** The user of the processes, if not that of Inlet. */
  readonly user: WorkerUser | undefined
}

/** The files of a task. */
export type TaskFiles = {
  /** The files that it reads. */
  readonly inputs?: readonly string[]
  /** The directory for its files. */
  readonly directory: string
}

export class WorkerAccess {
  readonly #directory: string
  readonly #user: WorkerUser | undefined
  /** Number of tasks that read a file. */
  readonly #readers = new Map<string, number>()
  /** The last change of permissions. They are made one after the other. */
  #lastChange: Promise<void> = Promise.resolve()

  constructor({ directory, user }: WorkerAccessOptions) {
    this.#directory = directory
    this.#user = user
  }

  /** Where to start processes. They use paths relative to it, so that the directories above stay closed. */
  get startDirectory(): string | undefined {
    return this.#user === undefined ? undefined : this.#directory
  }

  /** Throws UserError if this process may not give files to the group of the user. */
  async prepare(): Promise<void> {
    if (this.#user === undefined) return
    const { gid } = this.#user
    try {
      await this.#give(this.#directory, 0o710)
    } catch (error) {
      throw new UserError(
        `INLET_WORKER_USER: cannot give ${this.#directory} to group ${gid} (${errorMessage(error)}); run delivery as root, and let it own the data directory`,
        { cause: error },
      )
    }
  }

  /** Returns the path that a process uses. */
  inside(path: string): string {
    return this.#user === undefined ? path : relative(this.#directory, path)
  }

  /** Returns the path of what a process calls `path`. */
  outside(path: string): string {
    return this.#user === undefined ? path : resolve(this.#directory, path)
  }

  /** Gives the process of a task access to its files, until it is disposed. */
  async grant({ inputs = [], directory }: TaskFiles): Promise<AsyncDisposable> {
    await using ended = new AsyncDisposableStack()
    if (this.#user === undefined) return ended.move()
    for (const input of inputs) {
      ended.defer(() => this.#countReader(input, -1))
      await this.#countReader(input, 1)
    }
    ended.defer(() => chmod(directory, 0o700))
    await this.#open(directory, 0o770)
    return ended.move()
  }

  /** Opens a file for its first reader, and closes it after the last one. */
  #countReader(input: string, more: 1 | -1): Promise<void> {
    const readers = (this.#readers.get(input) ?? 0) + more
    if (readers === 0) this.#readers.delete(input)
    else this.#readers.set(input, readers)
    const change = async (): Promise<void> => {
      if (more === 1 && readers === 1) await this.#open(input, 0o640)
      if (readers === 0) await chmod(input, 0o600)
    }
    const changed = this.#lastChange.then(change)
    this.#lastChange = changed.catch(() => undefined)
    return changed
  }

  /** Takes files that a process wrote, after its task. Throws if one is something else. */
  async take(directory: string, names: readonly string[]): Promise<void> {
    if (this.#user === undefined) return
    for (const name of names) {
      const path = join(directory, name)
      const entry = await lstat(path)
      if (!entry.isFile() || entry.uid !== this.#user.uid) throw new Error(`the conversion process did not write ${name}`)
      await chown(path, process.geteuid?.() ?? -1, process.getegid?.() ?? -1)
      await chmod(path, 0o600)
    }
  }

  async #open(path: string, mode: number): Promise<void> {
    const parents = relative(this.#directory, dirname(path)).split(sep)
    for (let depth = 1; depth <= parents.length; depth++)
      await this.#give(join(this.#directory, ...parents.slice(0, depth)), 0o710)
    await this.#give(path, mode)
  }

  async #give(path: string, mode: number): Promise<void> {
    if (this.#user === undefined) return
    await chown(path, -1, this.#user.gid)
    await chmod(path, mode)
  }
}
