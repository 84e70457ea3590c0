import { lstat, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '#lib/files.ts'
import type { SegmentFiles } from './build.ts'
import type { BuiltFile } from './built-file.ts'

export type BuiltArtifacts = SegmentFiles & {
  /** Whether all files are still there. */
  isComplete(): Promise<boolean>
  /** Removes the files. */
  remove(): Promise<void>
}

export type BuiltDirectory = BuiltArtifacts & { readonly directory: string }

/** Builds files in a new directory of the scratch space. If the build throws, it leaves no file behind. */
export async function buildInDirectory(
  scratch: string,
  build: (directory: string) => Promise<SegmentFiles>,
): Promise<BuiltDirectory> {
  // Someone may have removed it since the start.
  await mkdir(scratch, { recursive: true })
  const directory = await mkdtemp(join(scratch, 'build-'))
  const remove = () => rm(directory, { recursive: true, force: true })
  try {
    const built = await build(directory)
    const isComplete = async () => (await Promise.all(built.files.map(isThere))).every(Boolean)
    return { directory, ...built, isComplete, remove }
  } catch (error) {
    await remove()
    throw error
  }
}

async function isThere({ path }: BuiltFile): Promise<boolean> {
  try {
    return (await lstat(path)).isFile()
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    throw error
  }
}
