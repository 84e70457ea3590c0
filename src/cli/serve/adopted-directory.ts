/**
 * Finds what is left of a node whose machine is gone.
 *
 * Owns: what counts as its data directory or its WAL, and the data directory for a WAL alone: `<data>/adopted/<node id>`, with a link to it.
 * Does not own: the id (node/identity.ts).
 * Law: nothing is created unless the directory is a node's and another one than that of this machine.
 */
import { mkdir, readlink, realpath, rm, stat, symlink } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import type { Config } from '#config/config.ts'
import { withDataDirectory } from '#config/data-paths.ts'
import { errorCode } from '#lib/files.ts'
import { readTrimmed } from '#lib/read-or-create.ts'
import { system } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'
import { isUuid } from '#lib/uuid.ts'

/** Returns the configuration to run what is in the directory. Throws UserError. */
export async function adoptedConfig(config: Config, directory: string): Promise<Config> {
  const data = await findDataDirectory(config, resolve(directory))
  const adopted = withDataDirectory(config, data)
  if ((await realPathOf(adopted.paths.wal)) === (await realPathOf(config.paths.wal)))
    throw new UserError(`${directory} is that of this node: start it with inlet node, without --adopt`)
  return adopted
}

async function findDataDirectory(config: Config, directory: string): Promise<string> {
  if (await isDirectory(join(directory, 'node', 'wal'))) return directory
  const id = (await readTrimmed(system.files, join(directory, 'node-id')).catch(() => undefined))?.toLowerCase()
  if (id === undefined)
    throw new UserError(
      `${directory} is neither the data directory of a node, which contains node/wal, nor a WAL, which contains node-id: name one of these`,
    )
  if (!isUuid(id)) throw new UserError(`${join(directory, 'node-id')} is not the id of a node: restore it`)
  const isInPlace = basename(directory) === 'wal' && basename(dirname(directory)) === 'node'
  const around = dirname(dirname(directory))
  if (isInPlace && (await readTrimmed(system.files, join(around, 'node', 'id'))) !== undefined) return around
  const own = join(config.paths.data, 'adopted', id)
  await linkTo(directory, join(own, 'node', 'wal'))
  return own
}

/** The volume may be mounted elsewhere than at the last start. */
async function linkTo(target: string, link: string): Promise<void> {
  await mkdir(dirname(link), { recursive: true, mode: 0o700 })
  const before = await readlink(link).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  })
  if (before === target) return
  await rm(link, { force: true })
  await symlink(target, link)
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
}

async function realPathOf(path: string): Promise<string> {
  return realpath(path).catch(() => path)
}
