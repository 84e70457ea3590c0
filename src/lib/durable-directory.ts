/**
 * Directories whose names survive a power failure.
 *
 * Law: a directory's name counts as durable only after this process has synced its parent. Who created it does not matter: another call or
 * process may have been stopped between creating and syncing it.
 */
import { statSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/** Beyond this many names they are forgotten, and synced once more when they are needed. */
const namesMax = 20_000

/** Paths of directories whose names, and those of the directories above them, this process has synced. */
const durable = new Set<string>()

export type MakeOptions = {
  readonly syncDirectory: (path: string) => Promise<void>
  /** Permissions of new directories. */
  readonly mode?: number
}

/** Creates a directory and its missing parents. Their names, and all names up to the mount point, are durable. */
export async function makeDurableDirectory(path: string, { syncDirectory, mode }: MakeOptions): Promise<void> {
  const target = resolve(path)
  if (durable.has(target) && isDirectory(target)) return
  const created = await makeMissing(target, mode)
  for (const name of created) durable.delete(name)
  const unsynced: string[] = []
  for (let at = target; !durable.has(at) && !(await isMountPoint(at)); at = dirname(at)) unsynced.push(at)
  if (durable.size > namesMax) durable.clear()
  for (const name of unsynced.toReversed()) {
    await syncDirectory(dirname(name)).catch((error: unknown) => {
      if (created.includes(name) || !mayBeOthers(error)) throw error
    })
    durable.add(name)
  }
}

/** Takes 2 µs, and an asynchronous call a hundred: it is made for each file that is written. */
function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** Call it when a directory is removed: another one of that name is not durable yet. */
export function forgetDirectory(path: string): void {
  durable.delete(resolve(path))
}

/**
 * Creates a directory and its missing parents. Returns those that it created. Not with `recursive` of Node, which never returns where the
 * system says that an existing parent is missing, as below /proc.
 */
async function makeMissing(path: string, mode: number | undefined): Promise<readonly string[]> {
  const attempt = await tryMake(path, mode)
  if (attempt === 'created') return [path]
  if (attempt === 'exists') return []
  const parents = dirname(path) === path ? [] : await makeMissing(dirname(path), mode)
  const again = await tryMake(path, mode)
  if (again instanceof Error) throw again
  return again === 'created' ? [path, ...parents] : parents
}

/** Returns the error if a parent is missing. */
async function tryMake(path: string, mode: number | undefined): Promise<'created' | 'exists' | Error> {
  try {
    await mkdir(path, { mode })
    return 'created'
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
    if (error.code === 'EEXIST' && (await stat(path)).isDirectory()) return 'exists'
    if (error.code === 'ENOENT') return error
    throw error
  }
}

/** The name of a mount point is not on the file system that is mounted there. */
async function isMountPoint(path: string): Promise<boolean> {
  const parent = dirname(path)
  return parent === path || (await stat(path)).dev !== (await stat(parent)).dev
}

/** A directory far above the data may belong to somebody else, or be read-only. Its names are older than this installation. */
function mayBeOthers(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return ['EACCES', 'EPERM', 'EROFS', 'EINVAL', 'ENOTSUP'].some((known) => known === code)
}
