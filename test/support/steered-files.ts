import { type Files, type OpenFile, systemFiles } from '#lib/files.ts'
import { replaceOperations } from './replace-operations.ts'

/** Files, real ones unless given others, but the test decides when an fdatasync of an open segment returns, whether it succeeds, and how much space is free. */
export class SteeredFiles {
  /** Undefined for the real value. */
  freeBytes: number | undefined
  /** Resolves when an fdatasync may begin. */
  #beforeSync: () => Promise<void> = () => Promise.resolve()
  #syncs = 0

  readonly files: Files

  constructor(files = systemFiles) {
    this.files = {
      ...files,
      space: async (path) => {
        const space = await files.space(path)
        return { ...space, free_bytes: this.freeBytes ?? space.free_bytes }
      },
      open: async (path, mode) => {
        const file = await files.open(path, mode)
        return path.endsWith('.open') ? this.#wrap(file) : file
      },
    }
  }

  /** Number of fdatasync calls. */
  get syncs(): number {
    return this.#syncs
  }

  /** Makes fdatasync hang until the returned function is called. */
  hang(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#beforeSync = () => promise
    return () => {
      this.#beforeSync = () => Promise.resolve()
      resolve()
    }
  }

  /** Makes each fdatasync hang until its function in the returned list is called. */
  hangEach(): (() => void)[] {
    const hanging: (() => void)[] = []
    this.#beforeSync = () => new Promise((resolve) => hanging.push(resolve))
    return hanging
  }

  /** Makes the next fdatasync fail as on a broken disk. */
  failOnce(): void {
    this.#beforeSync = () => {
      this.#beforeSync = () => Promise.resolve()
      return Promise.reject(Object.assign(new Error('EIO: fdatasync'), { code: 'EIO' }))
    }
  }

  #wrap(file: OpenFile): OpenFile {
    return replaceOperations(file, {
      sync: async () => {
        this.#syncs += 1
        await this.#beforeSync()
        await file.sync()
      },
    })
  }
}
