/**
 * `inlet restore`: puts the files of a backup into an empty data directory.
 *
 * Owns: what is checked, and that a restore is whole or visibly unfinished. Does not own: what a start makes of the files.
 * Law: nothing starts on part of a backup. Until the end there is a directory `restoring`, with which no start succeeds.
 */
import { lchown, rename, rm, rmdir, stat } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import type { Config } from '#config/config.ts'
import { errorCode, systemFiles } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'
import { skipSeqs } from '#log/local/backup.ts'
import { writeRestored } from '#store/commits/restored.ts'
import { formatBytes } from '../segments/format.ts'
import type { CliContext } from '../terminal/context.ts'
import { type JsonFlags, printResult } from '../terminal/print-json.ts'
import { Progress } from '../terminal/progress.ts'
import { copyFile, syncTree } from './copy-file.ts'
import { compileCacheName, type Manifest, readManifest } from './manifest.ts'
import { makePrivateDirectory } from './private-directory.ts'
import { explainSystemError, explainSystemErrors } from './system-errors.ts'

/** A log that seals each second uses as many in four months. A seq has 12 digits in names. */
const seqsSkipped = 10_000_000

export async function restore(this: CliContext, { json }: JsonFlags, path: string): Promise<void> {
  const config = await this.readConfig()
  const { data, restoring } = config.paths
  const from = resolve(path)
  const manifest = await explainSystemErrors(() => readManifest(from))
  await explainSystemErrors(() => prepareTarget(config.paths, manifest))
  const total = manifest.files.reduce((sum, { bytes }) => sum + bytes, 0)
  const progress = new Progress({ output: json ? this.process.stderr : this.process.stdout, label: 'restored', total })
  let done = 0
  try {
    for (const { path: name, bytes, sha256 } of manifest.files) {
      const copied = await copyFile(join(from, name), join(restoring, name), (read) => {
        done += read
        progress.show(Math.min(done, total - 1), formatBytes(done))
      })
      if (copied === undefined) throw new UserError(`${join(from, name)} is missing from the backup`)
      if (copied.bytes !== bytes || copied.sha256 !== sha256)
        throw new UserError(`${join(from, name)} is not as it was backed up: its checksum differs`)
    }
    // Nodes follow the database that comes with it, although they may know a newer state of it.
    if (manifest.database !== 'none')
      await writeRestored(systemFiles, join(restoring, relative(data, config.paths.restored)), manifest, this.clock.now())
    // The lost machine went on after the backup: its receipts name a node and a seq, so no seq that it may have used is used again.
    await skipSeqs(systemFiles, join(restoring, relative(data, config.paths.wal)), seqsSkipped)
    await giveToOwner(restoring, data)
    await syncTree(restoring)
  } catch (error) {
    // Nothing has left it yet: the directory is as empty as before.
    await rm(restoring, { recursive: true, force: true })
    if (errorCode(error) === 'ENOSPC') throw new UserError(`there is no room in ${data}: nothing was restored`)
    throw explainSystemError(error)
  }
  await moveIntoPlace(config.paths)
  progress.show(total, formatBytes(total))
  const { files, ...facts } = manifest
  printResult(this, { json }, { directory: data, ...facts, files: files.length, bytes: total }, describe(data, manifest))
}

/** Entries that a directory may have before anything was stored. */
const notData = ['lost+found', compileCacheName]

/** Refuses a directory with anything in it but what an interrupted restore left there, and removes that. */
async function prepareTarget({ data, restoring }: Config['paths'], manifest: Manifest): Promise<void> {
  const entries = (await systemFiles.list(data)).map(({ name }) => name).filter((name) => !notData.includes(name))
  const isInterrupted = entries.includes('restoring')
  const ofBackup = new Set(manifest.files.map(({ path }) => path.split('/')[0]))
  const others = entries.filter((name) => !(isInterrupted && (name === 'restoring' || ofBackup.has(name))))
  if (others.length > 0)
    throw new UserError(
      `${resolve(data)} is not empty (${others.slice(0, 3).join(', ')}): move away what is there, or set INLET_DATA_DIR to another directory`,
    )
  for (const name of entries.filter((each) => each !== 'restoring')) await rm(join(data, name), { recursive: true })
  await rm(restoring, { recursive: true, force: true })
  await makePrivateDirectory(restoring)
  await systemFiles.syncDirectory(data)
}

/**
 * Root restores for the user who owns the data directory, as a service or a container has one of its own. A directory changes its owner
 * after what is in it, so that nobody puts a link there meanwhile.
 */
async function giveToOwner(directory: string, data: string): Promise<void> {
  const { uid, gid } = await stat(data)
  if (process.getuid?.() !== 0 || uid === 0) return
  for (const { name, kind } of await systemFiles.list(directory)) {
    const path = join(directory, name)
    if (kind === 'directory') await giveToOwner(path, data)
    await lchown(path, uid, gid)
  }
}

async function moveIntoPlace({ data, restoring }: Config['paths']): Promise<void> {
  for (const { name } of await systemFiles.list(restoring)) await rename(join(restoring, name), join(data, name))
  await systemFiles.syncDirectory(data)
  await rmdir(restoring)
  await systemFiles.syncDirectory(data)
}

function describe(data: string, { begun_at, database, files }: Manifest): string {
  const lines = [
    `${files.length} files of ${begun_at} are restored in ${resolve(data)}`,
    ...(database === 'postgres' ? ['Restore the database in Postgres before you start.'] : []),
    'Start Inlet, and then record what was delivered after the backup: inlet commits rebuild',
    'Never start it while the machine that the backup is of still runs: both would deliver as one node.',
  ]
  return `${lines.join('\n')}\n`
}
