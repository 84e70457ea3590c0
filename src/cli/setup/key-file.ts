/**
 * Where the secrets of new keys go: a JSON object by name.
 *
 * Law: only the user can read the file, and it never has a part of itself: a new one replaces it.
 */
import { chmod, lstat, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'

export class KeyFile {
  readonly #path: string
  readonly #secrets: Record<string, string>
  /** Writes follow each other. */
  #written: Promise<void> = Promise.resolve()

  private constructor(path: string, secrets: Record<string, string>) {
    this.#path = path
    this.#secrets = secrets
  }

  /** Reads what is there, and tries to write it. Throws a UserError. */
  static async open(path: string): Promise<KeyFile> {
    const file = new KeyFile(path, await readSecrets(path))
    await file.#write()
    return file
  }

  add(name: string, secret: string): Promise<void> {
    this.#secrets[name] = secret
    this.#written = this.#written.then(() => this.#write())
    return this.#written
  }

  async #write(): Promise<void> {
    const temporary = `${this.#path}.${process.pid}.tmp`
    try {
      await writeFile(temporary, `${JSON.stringify(this.#secrets, undefined, 2)}\n`, { mode: 0o600, flush: true })
      await chmod(temporary, 0o600)
      await rename(temporary, this.#path)
    } catch (error) {
      await rm(temporary, { force: true })
      throw new UserError(`cannot write ${this.#path}: ${errorCode(error) ?? error}`)
    }
  }
}

async function readSecrets(path: string): Promise<Record<string, string>> {
  try {
    if (!(await lstat(path)).isFile()) throw new UserError(`--keys-to: ${path} is not a file`)
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (typeof value === 'object' && value !== null && Object.values(value).every((secret) => typeof secret === 'string'))
      return Object.assign(Object.create(null), value)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return Object.create(null)
    if (error instanceof UserError) throw error
    if (!(error instanceof SyntaxError)) throw new UserError(`cannot read ${path}: ${errorCode(error) ?? error}`)
  }
  throw new UserError(`--keys-to: ${path} has something else than keys: name another file`)
}
