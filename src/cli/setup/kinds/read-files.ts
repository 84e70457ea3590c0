/**
 * Finds the files of a set-up.
 *
 * Law: reads only regular files below the directories that were named, whatever symbolic links say, and only so many bytes.
 */
import { isUtf8 } from 'node:buffer'
import type { Dirent } from 'node:fs'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { MiB } from '#lib/bytes.ts'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'
import { setupLimits } from './limits.ts'
import type { Problems } from './problems.ts'

export type SetupFile = { readonly name: string; readonly text: string }

/** `tests` are the files with tests of views, which stand beside the others. */
export type SetupFiles = { readonly files: readonly SetupFile[]; readonly tests: readonly SetupFile[] }

const { filesMax, depthMax, fileBytesMax, totalBytesMax } = setupLimits

/** Reads each path: a file, a directory with all that is below it, or `-` for standard input. Throws a UserError if nothing is there. */
export async function readSetupFiles(paths: readonly string[], problems: Problems): Promise<SetupFiles> {
  const reading = new Reading(problems)
  for (const path of paths) await (path === '-' ? reading.readInput() : reading.readNamed(path))
  const [tests, files] = [
    reading.files.filter(({ name }) => isTestFile(name)),
    reading.files.filter(({ name }) => !isTestFile(name)),
  ]
  return { files, tests }
}

function isTestFile(name: string): boolean {
  return /\.test\.ya?ml$/.test(name)
}

/** Whether a directory keeps its entry for Inlet. Those that begin with a dot are for other programs. */
export function isSetupFile(name: string): boolean {
  return /^[^.].*\.ya?ml$/s.test(name)
}

class Reading {
  readonly files: SetupFile[] = []
  readonly #problems: Problems
  readonly #seen = new Set<string>()
  #bytes = 0

  constructor(problems: Problems) {
    this.#problems = problems
  }

  async readInput(): Promise<void> {
    this.#add('standard input', await buffer(process.stdin))
  }

  async readNamed(path: string): Promise<void> {
    const stats = await stat(path).catch((error: unknown) => {
      throw new UserError(
        errorCode(error) === 'ENOENT' ? `there is no file or directory ${path}` : `cannot read ${path}: ${reasonOf(error)}`,
      )
    })
    const root = await realpath(path)
    // A pipe of a shell: -f <(…).
    if (stats.isFile() || stats.isFIFO()) return this.#readFile(path, root, stats.size)
    if (!stats.isDirectory()) throw new UserError(`${path} is not a file or directory`)
    const before = this.files.length + this.#problems.count
    await this.#readDirectory(path, root, root, 0)
    if (this.files.length + this.#problems.count === before)
      throw new UserError(`${path} has no files that end in .yaml or .yml: inlet export -f ${path} writes what exists`)
  }

  async #readDirectory(shown: string, real: string, root: string, depth: number): Promise<void> {
    if (depth > depthMax) return this.#problems.add({ file: shown }, '', `is nested deeper than ${depthMax} directories`)
    if (this.#seen.has(real)) return
    this.#seen.add(real)
    const entries = await readdir(real, { withFileTypes: true }).catch((error: unknown) => {
      this.#problems.add({ file: shown }, '', `cannot be read: ${reasonOf(error)}`)
      return []
    })
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1)))
      await this.#readEntry(shown, real, root, depth, entry)
  }

  async #readEntry(parent: string, real: string, root: string, depth: number, entry: Dirent): Promise<void> {
    const { name } = entry
    if (name.startsWith('.') || (entry.isFile() && !isSetupFile(name))) return
    const shown = join(parent, name)
    const path = entry.isSymbolicLink() ? await realpath(join(real, name)).catch(() => undefined) : join(real, name)
    const stats = path === undefined ? undefined : await stat(path).catch(() => undefined)
    if (path === undefined || stats === undefined) {
      if (isSetupFile(name)) this.#problems.add({ file: shown }, '', 'cannot be read: it leads to nothing')
      return
    }
    if (!stats.isDirectory() && !isSetupFile(name)) return
    if (path !== root && !path.startsWith(root + sep))
      return this.#problems.add({ file: shown }, '', 'is a symbolic link that leaves the directory: put a file there')
    if (stats.isDirectory()) return this.#readDirectory(shown, path, root, depth + 1)
    return stats.isFile() ? this.#readFile(shown, path, stats.size) : this.#problems.add({ file: shown }, '', 'is not a file')
  }

  async #readFile(shown: string, path: string, bytes: number): Promise<void> {
    if (this.#seen.has(path)) return
    this.#seen.add(path)
    if (bytes > fileBytesMax) return this.#tooLarge(shown)
    const content = await readFile(path).catch((error: unknown) => {
      this.#problems.add({ file: shown }, '', `cannot be read: ${reasonOf(error)}`)
      return undefined
    })
    if (content !== undefined) this.#add(shown, content)
  }

  #add(name: string, content: Buffer): void {
    this.#bytes += content.length
    if (content.length > fileBytesMax) this.#tooLarge(name)
    else if (!isUtf8(content)) this.#problems.add({ file: name }, '', 'is not UTF-8')
    else this.files.push({ name, text: content.toString() })
    if (this.files.length > filesMax) throw new UserError(`there are more than ${filesMax} files`)
    if (this.#bytes > totalBytesMax) throw new UserError(`the files have more than ${totalBytesMax / MiB} MiB together`)
  }

  #tooLarge(name: string): void {
    this.#problems.add({ file: name }, '', `is larger than ${fileBytesMax / MiB} MiB: split it into several files`)
  }
}

function reasonOf(error: unknown): string {
  return errorCode(error) ?? String(error)
}
