import { readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Config } from '#config/config.ts'
import type { Logger } from '#lib/telemetry.ts'

const others = 0o077
const groupMayPass = 0o010

/** Warns if other users of the machine can read the data directory: its files were written before it was private, or somebody changed them. */
export async function warnAboutPermissions({ paths, bucketsGroup, workerUser }: Config, logger: Logger): Promise<void> {
  const reachable = (await modeOf(paths.data)) & others
  // Nobody can reach what is below a closed directory.
  if (reachable === 0) return
  const allowed = bucketsGroup === null ? 0 : groupMayPass
  const open = [...((reachable & ~allowed) === 0 ? [] : [paths.data])]
  for (const name of await readdir(paths.data)) {
    const isShared = bucketsGroup !== null && name === basename(paths.buckets)
    const path = join(paths.data, name)
    const ofWorkers = workerUser !== null && path === paths.node ? groupMayPass : 0
    if (!isShared && ((await modeOf(path)) & others & ~ofWorkers) !== 0) open.push(path)
  }
  if (open.length === 0) return
  const remedy = `chmod -R go= ${open.join(' ')}`
  logger.warn({ paths: open, remedy }, 'other users can read the data directory')
}

/** Returns 0 if the path is missing: it will be created with the right permissions. */
async function modeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ mode }) => mode,
    () => 0,
  )
}
