import { basename, join } from 'node:path'
import { digestFile } from '#lib/digest-file.ts'
import type { Files } from '#lib/files.ts'
import type { BuiltFile } from './build/built-file.ts'

type HasPath = Pick<BuiltFile, 'path'>

/** A directory of the scratch space for the files of one build. */
export class BuildDirectory {
  readonly path: string
  readonly #files: Files

  private constructor(path: string, files: Files) {
    this.path = path
    this.#files = files
  }

  static async create(files: Files, scratch: string): Promise<BuildDirectory> {
    return new BuildDirectory(await files.makeTemporaryDirectory(join(scratch, 'build-')), files)
  }

  async hasAll(files: readonly HasPath[]): Promise<boolean> {
    for (const { path } of files) if ((await this.#files.bytes(path)) === undefined) return false
    return true
  }

  /** Reads all files, and returns whether each has the content that was built. */
  async hasIntact(files: readonly BuiltFile[]): Promise<boolean> {
    if (!(await this.hasAll(files))) return false
    for (const { path, sha256 } of files) if ((await digestFile(this.#files, path)).sha256 !== sha256) return false
    return true
  }

  /** Removes all but these files. */
  async keepOnly(files: readonly HasPath[]): Promise<void> {
    const kept = new Set(files.map(({ path }) => basename(path)))
    for (const { name } of await this.#files.list(this.path))
      if (!kept.has(name)) await this.#files.removeTree(join(this.path, name))
  }

  /** Removes the directory. If these are all of its files, that is quicker than to find out what there is. */
  async remove(files: readonly HasPath[] = []): Promise<void> {
    try {
      await Promise.all(files.map(({ path }) => this.#files.remove(path)))
      await this.#files.removeDirectory(this.path)
    } catch {
      await this.#files.removeTree(this.path)
    }
  }
}
