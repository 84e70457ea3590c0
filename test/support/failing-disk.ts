import { type Files, type OpenFile, systemFiles } from '#lib/files.ts'
import { replaceOperations } from './replace-operations.ts'

const changing = ['open', 'makeDirectory', 'syncDirectory', 'rename', 'link', 'remove', 'removeDirectory', 'touch'] as const
const reading = ['read', 'bytes', 'list', 'changedAt', 'space'] as const

/** Real files, all of whose operations fail while `code` is set. A file system that is only read-only can still be read. */
export class FailingDisk {
  code: string | undefined
  readonly files: Files = {
    ...systemFiles,
    open: async (path, mode) => this.#wrap(await this.#run(systemFiles.open, path, mode)),
  }

  constructor() {
    for (const name of [...changing.slice(1), ...reading]) {
      Object.assign(this.files, {
        [name]: (...args: unknown[]) => {
          if (this.#fails(name)) return Promise.reject(this.#error())
          return Reflect.apply(systemFiles[name], this.files, args)
        },
      })
    }
  }

  #fails(name: string): boolean {
    return this.code !== undefined && (this.code === 'EIO' || !reading.some((each) => each === name))
  }

  #error(): Error {
    return Object.assign(new Error(`${this.code}: the disk of the test`), { code: this.code })
  }

  #run<A extends unknown[], T>(act: (...args: A) => Promise<T>, ...args: A): Promise<T> {
    return this.code === undefined ? act(...args) : Promise.reject(this.#error())
  }

  #wrap(file: OpenFile): OpenFile {
    return replaceOperations(file, {
      write: (chunks, position) => this.#run(() => file.write(chunks, position)),
      read: (into, position) => this.#run(() => file.read(into, position)),
      truncate: (bytes) => this.#run(() => file.truncate(bytes)),
      isNamed: () => this.#run(() => file.isNamed()),
      sync: () => this.#run(() => file.sync()),
    })
  }
}
