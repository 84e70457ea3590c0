/**
 * Keeps files of partitions apart on disks that ignore case, such as those of macOS and shares of Windows.
 *
 * Law: there, `country=DE` and `country=de` are one folder, with the name that came first. Files of the other key have a mark of their exact
 * folder in their name. Elsewhere no name has one.
 */
import { createHash } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import type { Files } from '#lib/files.ts'

/** The folder below the root that has files that are being written. */
export const incomingFolder = '.incoming'

/** `%` in a key is `%25` in a path, so no other name has a mark. */
export const folderMark = /%~[0-9a-f]{16}(?=\.parquet$)/

const suffix = '.parquet'

export class FolderCase {
  readonly #root: string
  readonly #files: Files
  #ignoresCase: boolean | undefined

  constructor(root: string, files: Files) {
    this.#root = root
    this.#files = files
  }

  /** Returns the path for a file that is written, which has a mark if its folder is one of another key. Makes the folder. */
  async pathForWriting(path: string, key: string): Promise<string> {
    if (!(await this.#canBeTaken(key))) return path
    await this.#files.makeDirectory(dirname(path))
    return this.#markedPath(path, key)
  }

  async pathForReading(path: string, key: string): Promise<string> {
    return (await this.#canBeTaken(key)) ? this.#markedPath(path, key) : path
  }

  /** Whether the folder of the key could be taken for another one. */
  async #canBeTaken(key: string): Promise<boolean> {
    return key.endsWith(suffix) && hasTextInFolders(key) && this.#isCaseIgnored()
  }

  async #markedPath(path: string, key: string): Promise<string> {
    if (await this.#areNamedSo(dirname(path))) return path
    const folders = key.slice(0, key.lastIndexOf('/'))
    const mark = createHash('sha256').update(folders).digest('hex').slice(0, 16)
    return `${path.slice(0, -suffix.length)}%~${mark}${suffix}`
  }

  /** Whether the folders of partitions in the path have exactly these names, or are not there. */
  async #areNamedSo(path: string): Promise<boolean> {
    for (let folder = path; folder.length > this.#root.length; folder = dirname(folder)) {
      const name = basename(folder)
      if (!name.includes('=') || (await this.#files.bytes(folder)) === undefined) continue
      const entries = await this.#files.list(dirname(folder))
      if (!entries.some((entry) => entry.name === name)) return false
    }
    return true
  }

  /** The disk tells once a file was written. Before that there is none to read. */
  async #isCaseIgnored(): Promise<boolean> {
    if (this.#ignoresCase !== undefined) return this.#ignoresCase
    const exists = async (name: string) => (await this.#files.bytes(join(this.#root, name))) !== undefined
    if (!(await exists(incomingFolder))) return false
    this.#ignoresCase = await exists(incomingFolder.toUpperCase())
    return this.#ignoresCase
  }
}

/** Whether the value of a partition has something besides digits: letters have a case, and accents have two forms. */
function hasTextInFolders(key: string): boolean {
  return key.split('/').some((part) => part.includes('=') && /[^0-9_.~-]/.test(part.slice(part.indexOf('=') + 1)))
}
