import { lstatSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, rmdir, unlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { BuiltFile } from './build/built-file.ts'

type HasPath = Pick<BuiltFile, 'path'>

/** A directory of the scratch space for the files of one build. */
export class BuildDirectory {
  readonly path: string

  private constructor(path: string) {
    this.path = path
  }

  static async create(scratch: string): Promise<BuildDirectory> {
    const make = () => mkdtemp(join(scratch, 'build-'))
    const path = await make().catch(async () => {
      // Someone may have removed it since the start.
      await mkdir(scratch, { recursive: true })
      return make()
    })
    return new BuildDirectory(path)
  }

  hasAll(files: readonly HasPath[]): boolean {
    return files.every(({ path }) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === true)
  }

  /** Removes all but these files. */
  async keepOnly(files: readonly HasPath[]): Promise<void> {
    const kept = new Set(files.map(({ path }) => basename(path)))
    for (const name of await readdir(this.path))
      if (!kept.has(name)) await rm(join(this.path, name), { recursive: true, force: true })
  }

  /** Removes the directory. If these are all of its files, that is quicker than to find out what there is. */
  async remove(files: readonly HasPath[] = []): Promise<void> {
    try {
      await Promise.all(files.map(({ path }) => unlink(path)))
      await rmdir(this.path)
    } catch {
      await rm(this.path, { recursive: true, force: true })
    }
  }
}
